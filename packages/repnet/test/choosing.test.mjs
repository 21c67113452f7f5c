/** Which way a flow goes: the process default, hedging, the loser. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import net from 'node:net';
import { beforeEach, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { forgetPeers } from '../dist/client/peers.js';
import repnet from '../dist/index.js';
import './lib/far-away.mjs';
import { movedClock } from './lib/moved-clock.mjs';
import { countingServer, defaults, echo, settle, until } from './lib/support.mjs';

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

/** The default mode, and the warnings, of a process that loads the library with this value of REPNET_MODE. */
function loaded(value) {
  const program = `
    process.on('warning', ({ name, code }) => console.log(name, code));
    console.log(String(require(${JSON.stringify(MODULE)}).defaults.replicate));`;
  const env = { ...process.env, REPNET_MODE: value };
  if (value === undefined) delete env.REPNET_MODE;
  return spawnSync(process.execPath, ['-e', program], { encoding: 'utf8', env }).stdout.trim().split('\n');
}

for (const [value, expected] of [
  [undefined, 'flow'],
  ['flow', 'flow'],
  ['syn', 'syn'],
  ['off', 'false'],
])
  test(`REPNET_MODE=${value} is the process default`, () => {
    assert.deepEqual(loaded(value), [expected]);
  });

test('REPNET_MODE of any other value: a warning, and the mode is as without it', () => {
  assert.deepEqual(loaded('twice'), ['flow', 'RepnetWarning REPNET_MODE']);
});

test('RepSYN, hedged: the second connection is not made if the first is quick', async (t) => {
  const server = await countingServer(t, net);
  const options = { replicate: 'syn', peer: 'plain', copyDelay: 60 };
  // However long the connection takes on a busy machine, the delay is not over when it is established.
  const clock = movedClock();
  t.after(clock.stop);
  assert.equal(await echo(dial(t, server.port, options), 'x'), 'x');
  clock.tick(120);
  // A second connection would be accepted before one that begins now.
  const later = net.connect(server.port, HOST);
  t.after(() => later.destroy());
  assert.equal(await echo(later, 'y'), 'y');
  assert.equal(server.accepted, 2);
});

for (const [loser, outcome] of [
  [undefined, 'lives'],
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
    // On a busy machine it may hear of the reset much later; it ends by it.
    if (outcome === 'lives') {
      await settle();
      child.stdin.end();
    }
    await until(() => child.exitCode !== null, 'it ends');
    assert.equal(output.trim().split('\n')[1], outcome);
  });
