/** Which way a flow goes: the process default, discovery, hedging, the loser. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import net from 'node:net';
import { beforeEach, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { forgetPeers } from '../dist/flow/peers.js';
import repnet from '../dist/index.js';
import { defaults, echo, echoServer, settle, until } from './lib/support.mjs';

const HOST = '127.0.0.1';
const MODULE = fileURLToPath(new URL('../dist/index.js', import.meta.url));

beforeEach(() => {
  forgetPeers();
  repnet.resetStats();
  Object.assign(defaults, { waitTimeout: 300, pairTimeout: 300 });
});

const dial = (t, port, options) => {
  const socket = repnet.connect({ host: HOST, port, ...options });
  t.after(() => socket.destroy());
  return socket;
};

/** An unmodified server; `accepted` counts its connections, `open` those of them that are. */
async function plainServer(t) {
  const seen = { accepted: 0, sockets: new Set() };
  const server = net.createServer((socket) => {
    seen.accepted++;
    seen.sockets.add(socket);
    socket.on('error', () => {}).on('close', () => seen.sockets.delete(socket));
    socket.on('data', (chunk) => socket.write(chunk));
  });
  await new Promise((resolve) => server.listen(0, HOST, resolve));
  t.after(() => {
    for (const socket of seen.sockets) socket.destroy();
    server.close();
  });
  return Object.assign(seen, { port: server.address().port });
}

for (const [value, expected] of [
  [undefined, 'flow'],
  ['flow', 'flow'],
  ['syn', 'syn'],
  ['off', 'false'],
  ['twice', 'ERR_REPNET_OPTION'],
])
  test(`REPNET_MODE=${value} is the process default`, () => {
    const program = `try { console.log(String(require(${JSON.stringify(MODULE)}).defaults.replicate)) } catch (e) { console.log(e.code) }`;
    const env = { ...process.env, REPNET_MODE: value };
    if (value === undefined) delete env.REPNET_MODE;
    assert.equal(
      spawnSync(process.execPath, ['-e', program], { encoding: 'utf8', env }).stdout.trim(),
      expected,
    );
  });

test('RepSYN to an unknown server: the first flow is plain and asks beside it, the next race', async (t) => {
  const server = await plainServer(t);
  assert.equal(await echo(dial(t, server.port, { replicate: 'syn' }), 'first'), 'first');
  assert.equal(server.accepted, 1);
  await until(() => repnet.stats().foreignPeers === 1, 'nobody answers on the second port');
  assert.equal(await echo(dial(t, server.port, { replicate: 'syn' }), 'second'), 'second');
  await until(() => server.accepted === 3, 'two connections');
  assert.equal(repnet.stats().flowsSyn, 1);
});

test('RepSYN to an unknown RepNet server: never two connections for one flow', async (t) => {
  const { port, sockets } = await echoServer(t);
  for (let i = 1; i <= 5; i++) {
    assert.equal(await echo(dial(t, port, { replicate: 'syn' }), `flow ${i}`), `flow ${i}`);
    await settle();
    assert.equal(sockets.length, i);
  }
  assert.equal(repnet.stats().flowsSyn, 4);
});

test('RepSYN, and the second port takes hellos without a word: plain flows, and no question for each of them', async (t) => {
  const server = await plainServer(t);
  const silent = net.createServer((socket) => socket.on('error', () => {}).resume());
  let asked = 0;
  silent.on('connection', () => asked++);
  await new Promise((resolve) => silent.listen(0, HOST, resolve));
  t.after(() => silent.close());
  const options = { replicate: 'syn', replicaPort: silent.address().port };
  assert.equal(await echo(dial(t, server.port, options), 'first'), 'first');
  await until(() => repnet.stats().foreignPeers === 1, 'no answer has come');
  for (let i = 2; i <= 5; i++) {
    assert.equal(await echo(dial(t, server.port, options), `flow ${i}`), `flow ${i}`);
    await settle();
    // Two would be two flows to a server of this library behind a filter.
    assert.deepEqual([server.accepted, asked], [i, 1]);
  }
  const told = dial(t, server.port, { ...options, peer: 'plain' });
  assert.equal(await echo(told, 'x'), 'x');
  assert.equal(repnet.info(told).mode, 'syn');
});

test('RepSYN, hedged: the second connection is not made if the first is quick', async (t) => {
  const server = await plainServer(t);
  const options = { replicate: 'syn', peer: 'plain', copyDelay: 60 };
  assert.equal(await echo(dial(t, server.port, options), 'x'), 'x');
  await new Promise((resolve) => setTimeout(resolve, 120));
  assert.equal(server.accepted, 1);
});

for (const [loser, outcome] of [
  ['fin', 'lives'],
  ['rst', 'ECONNRESET'],
])
  test(`a Node server without an 'error' listener and loser '${loser}': ${outcome}`, async (t) => {
    const program = `
      const server = require('node:net').createServer((socket) => socket.on('data', (chunk) => socket.write(chunk)));
      server.listen(0, '127.0.0.1', () => console.log(server.address().port));
      process.on('uncaughtException', ({ code }) => { console.log(code); process.exit(); });
      process.stdin.on('end', () => { console.log('lives'); process.exit(); }).resume();`;
    const { spawn } = await import('node:child_process');
    const child = spawn(process.execPath, ['-e', program]);
    t.after(() => child.kill());
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text) => (output += text));
    await until(() => output.includes('\n'), 'it listens');
    const port = Number.parseInt(output, 10);
    const socket = dial(t, port, { replicate: 'syn', peer: 'plain', loser });
    socket.on('error', () => {});
    await Promise.race([echo(socket, 'x').catch(() => {}), new Promise((r) => socket.once('close', r))]);
    await settle();
    child.stdin.end();
    await until(() => child.exitCode !== null, 'it ends');
    assert.equal(output.trim().split('\n')[1], outcome);
  });
