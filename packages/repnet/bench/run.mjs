/**
 * npm run bench: what replication costs on loopback, as ratios to plain net in the same run. Client and server are two
 * processes. Options: --rounds N (15), --requests N per round (300), --elephant MB (1000), --idle N connections (2000),
 * --warm-up N connections of each mode before those are measured (5000; below some thousands it is the compiler that is).
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import { cpus, release } from 'node:os';
import { parseArgs } from 'node:util';
import repnet from 'repnet';
import { race, requestBoth, twins } from './bare.mjs';
import { compare, median, quartiles, table } from './measure.mjs';
import { MESSAGE_BYTES } from './server.mjs';
import { dialOnWire } from './wire.mjs';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '15' },
    requests: { type: 'string', default: '300' },
    elephant: { type: 'string', default: '1000' },
    idle: { type: 'string', default: '2000' },
    'warm-up': { type: 'string', default: '5000' },
  },
});
const [rounds, requests, elephantMegabytes, idleConnections, warmUpConnections] = [
  'rounds',
  'requests',
  'elephant',
  'idle',
  'warm-up',
].map((name) => Number(values[name]));

const MODES = ['net', 'off', 'syn', 'flow'];
/** Client and server where this library is not at both ends; a connection that is not replicated is measured with it at one, too. */
const ENDS = {
  net: [net, 'net'],
  off: [repnet, 'plain'],
  'off, client': [repnet, 'net'],
  'off, server': [net, 'plain'],
};
const ONE_END = ['off, client', 'off, server'];
/** What two connections cost without any logic (bare.mjs), and with what a flow says on the wire alone (wire.mjs); and which mode stands above which. */
const BARE = ['race', 'both', 'wire'];
const FLOOR = { syn: 'race', flow: 'wire' };
const REQUEST = Buffer.alloc(MESSAGE_BYTES, 'q');
const CONCURRENT = 32;
const HOST = '127.0.0.1';
const BARELY = { host: HOST, noDelay: true };

const server = fork(new URL('server.mjs', import.meta.url), { execArgv: ['--expose-gc'] });
server.once('exit', (code) => {
  if (server.connected) throw new Error(`the server process ended with code ${code}`);
});
const [{ ports }] = await once(server, 'message');

function connect(mode, service, options = {}) {
  const [library, end] = ENDS[mode] ?? [repnet, 'repnet'];
  return library.connect({
    host: HOST,
    port: ports[end][service],
    noDelay: true,
    ...(library === repnet ? { replicate: mode.startsWith('off') ? false : mode } : {}),
    ...options,
  });
}

/** One request on a connection of its own, to the end of the connection. */
async function requestOnce(mode) {
  if (mode === 'race') return exchange(mode, await race({ ...BARELY, port: ports.net.once }));
  if (mode === 'wire') return dialOnWire(BARELY, ports.wire.once, exchangeOnWire);
  if (mode !== 'both') return exchange(mode, connect(mode, 'once'));
  return twins(BARELY, [ports.net.once, ports.net.twin], (sockets) =>
    Promise.all(sockets.map((socket) => exchange(mode, socket))),
  );
}

function exchange(mode, socket) {
  return new Promise((resolve, reject) => {
    let received = 0;
    socket.on('data', (chunk) => (received += chunk.length));
    socket.on('error', reject);
    socket.on('close', () =>
      received === MESSAGE_BYTES
        ? resolve()
        : reject(new Error(`${mode}: ${received} of ${MESSAGE_BYTES} bytes`)),
    );
    socket.write(REQUEST);
  });
}

function exchangeOnWire(flow) {
  return new Promise((resolve, reject) => {
    let received = 0;
    flow.ondata = (chunk) => (received += chunk.length);
    flow.onend = () =>
      received === MESSAGE_BYTES
        ? resolve()
        : reject(new Error(`wire: ${received} of ${MESSAGE_BYTES} bytes`));
    flow.write(REQUEST);
  });
}

async function sequential(mode) {
  const began = performance.now();
  for (let i = 0; i < requests; i++) await requestOnce(mode);
  return (performance.now() - began) / requests;
}

async function concurrent(mode, connections = 3 * requests) {
  const each = Math.ceil(connections / CONCURRENT);
  const began = performance.now();
  await Promise.all(
    Array.from({ length: CONCURRENT }, async () => {
      for (let i = 0; i < each; i++) await requestOnce(mode);
    }),
  );
  return (performance.now() - began) / (CONCURRENT * each);
}

/** Requests on a kept-alive connection that are not measured. */
const UNMEASURED = 20;

async function keptAliveBoth() {
  let began = 0;
  let time = 0;
  const answered = (count) => {
    if (count === UNMEASURED) began = performance.now();
    if (count === UNMEASURED + requests) time = performance.now() - began;
  };
  await twins(BARELY, [ports.net.kept, ports.net.keptTwin], (sockets) =>
    requestBoth(sockets, REQUEST, UNMEASURED + requests, answered),
  );
  return time / requests;
}

/** By a flow on the wire alone. */
async function keptAliveOnWire() {
  let time = 0;
  await dialOnWire(BARELY, ports.wire.kept, (flow) => {
    let began = 0;
    let answered = 0;
    let received = 0;
    flow.ondata = (chunk) => {
      received += chunk.length;
      if (received < MESSAGE_BYTES) return;
      received -= MESSAGE_BYTES;
      if (++answered === UNMEASURED) began = performance.now();
      if (answered < UNMEASURED + requests) return flow.write(REQUEST);
      time = performance.now() - began;
      flow.end();
    };
    flow.write(REQUEST);
    return new Promise((resolve) => {
      flow.onend = resolve;
    });
  });
  return time / requests;
}

function keptAlive(mode) {
  if (mode === 'both') return keptAliveBoth();
  if (mode === 'wire') return keptAliveOnWire();
  return new Promise((resolve, reject) => {
    const socket = connect(mode, 'kept');
    let began = 0;
    let answered = 0;
    let received = 0;
    socket.on('data', (chunk) => {
      received += chunk.length;
      if (received < MESSAGE_BYTES) return;
      received -= MESSAGE_BYTES;
      answered++;
      if (answered === UNMEASURED) began = performance.now();
      if (answered < UNMEASURED + requests) socket.write(REQUEST);
      else {
        resolve((performance.now() - began) / requests);
        socket.end();
      }
    });
    socket.on('error', reject);
    socket.write(REQUEST);
  });
}

function elephant(mode) {
  const chunk = Buffer.alloc(65536, 'e');
  const chunks = Math.round((elephantMegabytes * 1e6) / chunk.length);
  return new Promise((resolve, reject) => {
    const socket = connect(mode, 'sink', { allowHalfOpen: true });
    const began = performance.now();
    let answer = '';
    let sent = 0;
    const pump = () => {
      while (sent < chunks) {
        sent++;
        if (!socket.write(chunk)) return void socket.once('drain', pump);
      }
      socket.end();
    };
    socket.setEncoding('latin1').on('data', (text) => (answer += text));
    socket.on('end', () => {
      if (Number(answer) === chunks * chunk.length) resolve((performance.now() - began) / 1000);
      else reject(new Error(`${mode}: the sink counted ${answer} of ${chunks * chunk.length} bytes`));
    });
    socket.on('error', reject);
    socket.once('connect', pump);
  });
}

async function ask(question) {
  server.send(question);
  const [answer] = await once(server, 'message');
  return answer;
}

/** In use once nothing more can be freed: what closed connections held goes a few collections later. */
async function memory() {
  for (let i = 0; ; i++) {
    const there = await ask('memory');
    globalThis.gc();
    if (i === 5) return { client: process.memoryUsage(), server: there };
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** Bytes per idle connection in client and server, after one request has made it a working (and paired) one. */
async function idle(mode) {
  const before = await memory();
  const sockets = [];
  const carry = (socket) => {
    socket.write(REQUEST);
    return new Promise((resolve, reject) => socket.once('data', resolve).once('error', reject));
  };
  for (let i = 0; i < idleConnections; i++) {
    const one = !BARE.includes(mode) && connect(mode, 'kept');
    if (one) await carry(one);
    if (one) sockets.push(one);
    else if (mode === 'wire')
      await dialOnWire(BARELY, ports.wire.kept, (flow) => {
        sockets.push(...flow.sockets);
        return new Promise((resolve) => {
          flow.ondata = resolve;
          flow.write(REQUEST);
        });
      });
    else
      await twins(BARELY, [ports.net.kept, ports.net.keptTwin], async (both) => {
        await Promise.all(both.map(carry));
        sockets.push(...both);
      });
  }
  await new Promise((resolve) => setTimeout(resolve, 500)); // late twins have arrived or been given up
  const after = await memory();
  // What is in use, not what is resident: free memory of earlier runs would be taken first.
  const used = ({ heapUsed, external }) => heapUsed + external;
  const perConnection = (side) => (used(after[side]) - used(before[side])) / idleConnections / 1024;
  const result = { client: perConnection('client'), server: perConnection('server') };
  await Promise.all(sockets.map((socket) => new Promise((resolve) => socket.once('close', resolve).end())));
  return result;
}

/** Costs of one round: time per unit, and the processor time of both processes, which other work on the machine disturbs less. */
async function measured(run, units) {
  const spent = async () => {
    const sum = ({ user, system }) => user + system;
    return (sum(await ask('cpu')) + sum(process.cpuUsage())) / 1000;
  };
  const before = await spent();
  const time = await run();
  return { time, cpu: ((await spent()) - before) / units };
}

const rows = [];
/** What stands below a mode in the same rounds: time, and processor time. */
function floorOf(mode, results) {
  const bare = results[FLOOR[mode]];
  if (bare === undefined) return '';
  return [bare.time, bare.cpu].map(({ ratios }) => `${median(ratios).toFixed(2)}x`).join(' ');
}

function report(name, unit, results, targets) {
  for (const [mode, { time, cpu }] of Object.entries(results)) {
    const ratio = median(time.ratios);
    const target = targets[mode];
    const plain = mode === 'net';
    rows.push([
      `${name}, ${mode}`,
      `${median(time.values).toFixed(3)} ${unit}`,
      plain ? '1' : `${ratio.toFixed(2)}x`,
      plain
        ? ''
        : quartiles(time.ratios)
            .map((value) => value.toFixed(2))
            .join('-'),
      target === undefined ? '' : `<= ${target}x`,
      target === undefined ? '' : ratio <= target ? 'met' : 'MISSED',
      plain ? '1' : `${median(cpu.ratios).toFixed(2)}x`,
      floorOf(mode, results),
    ]);
  }
}

try {
  const many = CONCURRENT * Math.ceil((3 * requests) / CONCURRENT);
  const fewRounds = Math.max(3, Math.round(0.6 * rounds));
  const elephantTarget = Number((1 / 0.98).toFixed(3));
  /** With many at a time: so much more than the bare connections took in the same rounds. */
  const overBare = (results, mode, most) => Number((most * median(results[mode].time.ratios)).toFixed(2));
  const compareOf = (count, run, units, modes, warmUp) =>
    compare(modes, count, (mode) => measured(() => run(mode), units), warmUp);
  const warmUp = (mode) => concurrent(mode, warmUpConnections);
  report(
    '1 KB, new connection',
    'ms',
    await compareOf(rounds, sequential, requests, [...MODES, ...ONE_END, ...BARE], warmUp),
    { off: 1.03, syn: 1.25, flow: 1.6 },
  );
  const atATime = await compareOf(rounds, concurrent, many, [...MODES, ...ONE_END, ...BARE]);
  report(`connection, ${CONCURRENT} at a time`, 'ms', atATime, {
    off: 1.03,
    syn: overBare(atATime, 'race', 1.03),
    flow: overBare(atATime, 'both', 1.05),
  });
  report('1 KB, kept alive', 'ms', await compareOf(rounds, keptAlive, requests, [...MODES, 'both', 'wire']), {
    off: 1.03,
    flow: 1.1,
  });
  report(`${elephantMegabytes} MB elephant`, 's', await compareOf(fewRounds, elephant, 1, MODES), {
    off: 1.03,
    syn: elephantTarget,
    flow: elephantTarget,
  });
  const idleRows = [];
  // Once the server has stopped waiting for second connections, and has made as many as it will have to hold.
  await new Promise((resolve) => setTimeout(resolve, repnet.defaults.waitTimeout + 1_000));
  await idle('net');
  for (const mode of [...MODES, 'both', 'wire']) {
    const { client, server: there } = await idle(mode);
    idleRows.push([mode, `${client.toFixed(1)} KiB`, `${there.toFixed(1)} KiB`]);
  }
  console.log(
    `repnet on Node ${process.version}, Linux ${release()}, ${cpus().length} x ${cpus()[0]?.model.trim()}`,
  );
  console.log(
    `${rounds} rounds of ${requests} requests after ${warmUpConnections} connections of each mode; medians over rounds, the range is the middle half; cpu: ratio of both processes' processor time; floor: both ratios of two bare handshakes (bench/bare.mjs), or of what a flow says on the wire (bench/wire.mjs)\n`,
  );
  console.log(table(['measured', 'cost', 'ratio', 'range', 'target', '', 'cpu', 'floor'], rows));
  console.log(
    `\nHeap and external memory per idle connection (${idleConnections} of them, each after one request)\n`,
  );
  console.log(table(['mode', 'client', 'server'], idleRows));
  console.log(`\n${JSON.stringify(repnet.stats())}`);
} finally {
  server.disconnect();
}
