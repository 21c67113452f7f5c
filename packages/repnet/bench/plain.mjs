/**
 * node bench/plain.mjs [--rounds 15] [--requests 1500] [--width 1] [--warm-up 8000]: processor time of a connection that is not
 * replicated, as a ratio to net's. Every way has a client and a server process of its own, as programs do, and they take turns: in run.mjs
 * one process has sockets of all kinds, and V8's caches of what they look like serve none of them as well. `net again` is the scatter.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import { parseArgs } from 'node:util';
import repnet from 'repnet';
import { median, quartiles, table } from './measure.mjs';

const BYTES = 1024;
/** Client, and service of server.mjs. */
const WAYS = {
  net: [net, 'net'],
  'net again': [net, 'net'],
  'not replicated': [repnet, 'plain'],
  '… this library at the client alone': [repnet, 'net'],
  '… at the server alone': [net, 'plain'],
};

function requestOnce(library, port) {
  return new Promise((resolve, reject) => {
    const off = library === repnet ? { replicate: false } : {};
    const socket = library.connect({ host: '127.0.0.1', port, noDelay: true, ...off });
    socket
      .on('data', () => {})
      .on('error', reject)
      .on('close', resolve);
    socket.write(Buffer.alloc(BYTES, 'q'));
  });
}

/** One way's client: told how many requests, answers with milliseconds of processor time per request, server and client. */
async function client(way, width) {
  const [library, service] = WAYS[way];
  const server = fork(new URL('server.mjs', import.meta.url));
  const [{ ports }] = await once(server, 'message');
  const spent = async () => {
    server.send('cpu');
    const [there] = await once(server, 'message');
    return [there, process.cpuUsage()].map(({ user, system }) => (user + system) / 1_000);
  };
  process.on('message', async (requests) => {
    const before = await spent();
    let left = requests;
    await Promise.all(
      Array.from({ length: width }, async () => {
        while (left-- > 0) await requestOnce(library, ports[service].once);
      }),
    );
    process.send((await spent()).map((value, side) => (value - before[side]) / requests));
  });
  process.on('disconnect', () => process.exit());
}

async function compare({ rounds, requests, width, 'warm-up': warmUp }) {
  const ways = Object.keys(WAYS);
  const clients = ways.map((way) => fork(new URL(import.meta.url), ['--way', way, '--width', width]));
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
    const ratio = (of) => costs[index].map((cost, round) => of(cost) / of(costs[0][round]));
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
    way: { type: 'string' },
    rounds: { type: 'string', default: '15' },
    requests: { type: 'string', default: '1500' },
    width: { type: 'string', default: '1' },
    'warm-up': { type: 'string', default: '8000' },
  },
});
if (values.way === undefined) await compare(values);
else await client(values.way, Number(values.width));
