/**
 * npm run bench: what replication costs on loopback, as ratios to plain net in the same run. Client and server are two
 * processes. Options: --rounds N (15), --requests N per round (300), --elephant MB (1000), --idle N connections (2000).
 */
import { fork } from 'node:child_process';
import net from 'node:net';
import { cpus, release } from 'node:os';
import { parseArgs } from 'node:util';
import repnet from 'repnet';
import { compare, median, quartiles, table } from './measure.mjs';
import { MESSAGE_BYTES } from './server.mjs';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '15' },
    requests: { type: 'string', default: '300' },
    elephant: { type: 'string', default: '1000' },
    idle: { type: 'string', default: '2000' },
  },
});
const [rounds, requests, elephantMegabytes, idleConnections] = ['rounds', 'requests', 'elephant', 'idle'].map(
  (name) => Number(values[name]),
);

const MODES = ['net', 'off', 'syn', 'flow'];
const REQUEST = Buffer.alloc(MESSAGE_BYTES, 'q');
const HOST = '127.0.0.1';

const server = fork(new URL('server.mjs', import.meta.url), { execArgv: ['--expose-gc'] });
const { ports } = await message(server);

function message(child) {
  return new Promise((resolve, reject) => {
    child.once('message', resolve);
    child.once('exit', (code) => reject(new Error(`the server process ended with code ${code}`)));
  });
}

function connect(mode, service, options = {}) {
  if (mode === 'net') return net.connect({ host: HOST, port: ports.net[service], noDelay: true, ...options });
  return repnet.connect({
    host: HOST,
    port: ports.repnet[service],
    noDelay: true,
    replicate: mode === 'off' ? false : mode,
    ...options,
  });
}

/** One request on a connection of its own, to the end of the connection. */
function requestOnce(mode) {
  return new Promise((resolve, reject) => {
    const socket = connect(mode, 'once');
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

async function sequential(mode) {
  const began = performance.now();
  for (let i = 0; i < requests; i++) await requestOnce(mode);
  return (performance.now() - began) / requests;
}

async function concurrent(mode) {
  const workers = 32;
  const each = Math.ceil(requests / workers) * 3;
  const began = performance.now();
  await Promise.all(
    Array.from({ length: workers }, async () => {
      for (let i = 0; i < each; i++) await requestOnce(mode);
    }),
  );
  return (performance.now() - began) / (workers * each);
}

function keptAlive(mode) {
  return new Promise((resolve, reject) => {
    const socket = connect(mode, 'kept');
    const warmUp = 20;
    let began = 0;
    let answered = 0;
    let received = 0;
    socket.on('data', (chunk) => {
      received += chunk.length;
      if (received < MESSAGE_BYTES) return;
      received -= MESSAGE_BYTES;
      answered++;
      if (answered === warmUp) began = performance.now();
      if (answered < warmUp + requests) socket.write(REQUEST);
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

async function memory() {
  server.send('memory');
  const there = await message(server);
  globalThis.gc();
  return { client: process.memoryUsage(), server: there };
}

/** Bytes per idle connection in client and server, after one request has made it a working (and paired) one. */
async function idle(mode) {
  const before = await memory();
  const sockets = [];
  for (let i = 0; i < idleConnections; i++) {
    const socket = connect(mode, 'kept');
    sockets.push(socket);
    socket.write(REQUEST);
    await new Promise((resolve, reject) => socket.once('data', resolve).once('error', reject));
  }
  await new Promise((resolve) => setTimeout(resolve, 500)); // late twins have arrived or been given up
  const after = await memory();
  const perConnection = (side) => (after[side].rss - before[side].rss) / idleConnections / 1024;
  const result = { client: perConnection('client'), server: perConnection('server') };
  await Promise.all(sockets.map((socket) => new Promise((resolve) => socket.once('close', resolve).end())));
  return result;
}

const rows = [];
function report(name, unit, scale, results, targets) {
  for (const [mode, { costs, ratios }] of Object.entries(results)) {
    const [low, high] = quartiles(ratios);
    const ratio = median(ratios);
    const target = targets[mode];
    rows.push([
      `${name}, ${mode}`,
      `${(median(costs) * scale).toFixed(3)} ${unit}`,
      mode === 'net' ? '1' : `${ratio.toFixed(2)}x`,
      mode === 'net' ? '' : `${low.toFixed(2)}-${high.toFixed(2)}`,
      target === undefined ? '' : `<= ${target}x`,
      target === undefined ? '' : ratio <= target ? 'met' : 'MISSED',
    ]);
  }
}

try {
  report('1 KB, new connection', 'ms', 1, await compare(MODES, rounds, sequential), {
    off: 1.03,
    syn: 1.45,
    flow: 1.7,
  });
  report('connections/s (32 at a time)', 'ms each', 1, await compare(MODES, rounds, concurrent), {
    off: 1.03,
    syn: 1.45,
    flow: 1.7,
  });
  report('1 KB, kept alive', 'ms', 1, await compare(MODES, rounds, keptAlive), { off: 1.03, flow: 1.6 });
  report(
    `${elephantMegabytes} MB elephant`,
    's',
    1,
    await compare(MODES, Math.max(3, Math.round(rounds / 3)), elephant),
    {
      off: 1.03,
      syn: Number((1 / 0.95).toFixed(3)),
      flow: Number((1 / 0.95).toFixed(3)),
    },
  );
  const idleRows = [];
  for (const mode of MODES) {
    const { client, server: there } = await idle(mode);
    idleRows.push([mode, `${client.toFixed(1)} KiB`, `${there.toFixed(1)} KiB`]);
  }
  console.log(
    `repnet on Node ${process.version}, Linux ${release()}, ${cpus().length} x ${cpus()[0]?.model.trim()}`,
  );
  console.log(
    `${rounds} rounds of ${requests} requests; cost and ratio are medians over rounds, the range is the middle half\n`,
  );
  console.log(table(['measured', 'cost', 'ratio', 'range', 'target', ''], rows));
  console.log(`\nResident memory per idle connection (${idleConnections} of them, each after one request)\n`);
  console.log(table(['mode', 'client', 'server'], idleRows));
  console.log(`\n${JSON.stringify(repnet.stats())}`);
} finally {
  server.disconnect();
}
