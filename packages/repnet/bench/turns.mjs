/**
 * node bench/turns.mjs [--of plain|syn|flow|kept] [--rounds 15] [--requests 1500] [--width 1] [--warm-up 8000]: processor time of a request
 * of 1 KB, as a ratio to net's. Every way has a client and a server process of its own, as programs do, and they take turns: in run.mjs
 * one process has sockets of all kinds, and V8's caches of what they look like serve none of them as well. `net again` is the scatter;
 * bare.mjs and wire.mjs are the floors. `kept`: 300 requests of each connection.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import { parseArgs } from 'node:util';
import repnet from 'repnet';
import { race, requestBoth, twins } from './bare.mjs';
import { median, quartiles, table } from './measure.mjs';
import { dialOnWire } from './wire.mjs';

const TO = { host: '127.0.0.1', noDelay: true };
/** As server.mjs has it, which runs where it is imported by a process of this program. */
const MESSAGE_BYTES = 1024;
const REQUEST = Buffer.alloc(MESSAGE_BYTES, 'q');
const KEPT = 300;
/** A hedge's delay in ms that no request on loopback takes: what it costs to be ready for a copy. */
const NEVER_LATE_MS = 1_000;

/** One request on a socket, to the end of the connection. */
function single(socket) {
  return new Promise((resolve, reject) => {
    socket
      .on('data', () => {})
      .on('error', reject)
      .on('close', resolve);
    socket.write(REQUEST);
  });
}

/** `count` requests on a socket. */
function many(socket, count) {
  return new Promise((resolve, reject) => {
    let received = 0;
    let answered = 0;
    socket.on('data', (chunk) => {
      received += chunk.length;
      if (received < MESSAGE_BYTES) return;
      received -= MESSAGE_BYTES;
      if (++answered < count) socket.write(REQUEST);
      else socket.end();
    });
    socket.on('error', reject).on('close', resolve);
    socket.write(REQUEST);
  });
}

/** `count` requests of a flow on the wire alone; one ends with the server's end. */
function onWire(flow, count) {
  let received = 0;
  let answered = 0;
  flow.ondata = (chunk) => {
    received += chunk.length;
    if (received < MESSAGE_BYTES) return;
    received -= MESSAGE_BYTES;
    if (++answered < count) flow.write(REQUEST);
    else if (count > 1) flow.end();
  };
  flow.write(REQUEST);
  return new Promise((resolve) => {
    flow.onend = resolve;
  });
}

const dial = (library, end, service, options) => (ports) =>
  library.connect({ ...TO, port: ports[end][service], ...options });
/** A way: dials, and asks once (`kept`: KEPT times). */
const oneSocket = (kept, library, end, options) => {
  const connect = dial(library, end, kept ? 'kept' : 'once', options);
  return (ports) => (kept ? many(connect(ports), KEPT) : single(connect(ports)));
};
const onNet = (kept) => oneSocket(kept, net, 'net', {});
const replicated = (kept, replicate, options = {}) =>
  oneSocket(kept, repnet, 'repnet', { replicate, ...options });
const bare = (kept) => (ports) =>
  twins(TO, kept ? [ports.net.kept, ports.net.keptTwin] : [ports.net.once, ports.net.twin], (sockets) =>
    kept ? requestBoth(sockets, REQUEST, KEPT - 1, () => {}) : Promise.all(sockets.map(single)),
  );
const wire = (kept) => (ports) =>
  dialOnWire(TO, ports.wire[kept ? 'kept' : 'once'], (flow) => onWire(flow, kept ? KEPT : 1));
const nets = (kept) => ({ net: onNet(kept), 'net again': onNet(kept) });
const flows = (kept) => ({
  ...nets(kept),
  RepFlow: replicated(kept, 'flow'),
  "hedged, copyDelay: 'p95'": replicated(kept, 'flow', { copyDelay: 'p95' }),
  'hedged, none copied': replicated(kept, 'flow', { copyDelay: NEVER_LATE_MS }),
  'two bare connections': bare(kept),
  'what it says on the wire': wire(kept),
});

const WAYS = {
  plain: {
    ...nets(false),
    'not replicated': oneSocket(false, repnet, 'plain', { replicate: false }),
    '… this library at the client alone': oneSocket(false, repnet, 'net', { replicate: false }),
    '… at the server alone': oneSocket(false, net, 'plain', {}),
  },
  syn: {
    ...nets(false),
    RepSYN: replicated(false, 'syn'),
    'two bare handshakes': async (ports) => single(await race({ ...TO, port: ports.net.once })),
  },
  flow: flows(false),
  kept: flows(true),
};

/** One way's client: told how many requests, answers with milliseconds of processor time per request, server and client. */
async function client(request, width, each) {
  const server = fork(new URL('server.mjs', import.meta.url));
  const [{ ports }] = await once(server, 'message');
  const spent = async () => {
    server.send('cpu');
    const [there] = await once(server, 'message');
    return [there, process.cpuUsage()].map(({ user, system }) => (user + system) / 1_000);
  };
  process.on('message', async (requests) => {
    const before = await spent();
    let left = Math.ceil(requests / each);
    const done = left * each;
    await Promise.all(
      Array.from({ length: width }, async () => {
        while (left-- > 0) await request(ports);
      }),
    );
    process.send((await spent()).map((value, side) => (value - before[side]) / done));
  });
  process.on('disconnect', () => process.exit());
}

async function compare({ of, rounds, requests, width, 'warm-up': warmUp }) {
  const ways = Object.keys(WAYS[of]);
  const clients = ways.map((way) =>
    fork(new URL(import.meta.url), ['--of', of, '--way', way, '--width', width]),
  );
  const run = async (index, count) => {
    clients[index].send(count);
    return (await once(clients[index], 'message'))[0];
  };
  const costs = ways.map(() => []);
  for (const index of ways.keys()) await run(index, Number(warmUp));
  for (let round = 0; round < rounds; round++)
    for (let i = 0; i < ways.length; i++) {
      const index = (i + round) % ways.length;
      costs[index].push(await run(index, Number(requests)));
    }
  for (const each of clients) each.disconnect();
  const sum = ([there, here]) => there + here;
  const rows = ways.map((way, index) => {
    const ratio = (part) => costs[index].map((cost, round) => part(cost) / part(costs[0][round]));
    const both = ratio(sum);
    return [
      way,
      `${(1_000 * median(costs[index].map(sum))).toFixed(1)} us`,
      `${median(both).toFixed(3)}x`,
      quartiles(both)
        .map((value) => value.toFixed(2))
        .join('-'),
      `${median(ratio(([there]) => there)).toFixed(3)}x`,
      `${median(ratio(([, here]) => here)).toFixed(3)}x`,
    ];
  });
  console.log(table(['processor time', 'both ends', 'ratio', 'range', 'server', 'client'], rows));
}

const { values } = parseArgs({
  options: {
    of: { type: 'string', default: 'plain' },
    way: { type: 'string' },
    rounds: { type: 'string', default: '15' },
    requests: { type: 'string', default: '1500' },
    width: { type: 'string', default: '1' },
    'warm-up': { type: 'string', default: '8000' },
  },
});
if (values.way === undefined) await compare(values);
else await client(WAYS[values.of][values.way], Number(values.width), values.of === 'kept' ? KEPT : 1);
