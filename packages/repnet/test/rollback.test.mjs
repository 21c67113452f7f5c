/** A server that paired by token and does not any more: what clients that remember it do, and how soon they ask again. */
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import net from 'node:net';
import { beforeEach, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { forgetPeers } from '../dist/client/peers.js';
import repnet from '../dist/index.js';
import { movedClock } from './lib/moved-clock.mjs';
import { startRelay } from './lib/relay.mjs';
import { defaults, messageOf, settle, until } from './lib/support.mjs';

Object.assign(defaults, { pairTimeout: 400, waitTimeout: 1_200 });
const HOST = '127.0.0.1';
beforeEach(() => {
  forgetPeers();
  repnet.resetStats();
});

/** Answers whole lines, and keeps what it got. */
function lines(api, t, options) {
  const got = [];
  const server = api.createServer(options, (socket) => {
    let text = '';
    t.after(() => socket.destroy());
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
      if (text !== 'hello\n') return;
      got.push(text);
      socket.end('answer');
    });
  });
  return { server, got };
}

const listen = (server, port = 0) =>
  new Promise((resolve, reject) => server.once('error', reject).listen(port, HOST, resolve));

/** One request: the answer, or the code of the error. */
const ask = (t, port, options) =>
  new Promise((resolve) => {
    const socket = repnet.connect({ host: HOST, port, replicate: 'flow', pairing: 'token', ...options });
    t.after(() => socket.destroy());
    let text = '';
    socket.on('data', (chunk) => (text += chunk));
    socket.on('error', ({ code }) => resolve(code)).on('close', () => resolve(text));
    socket.write('hello\n');
  });

/** Attempts to connect of this process that are under way. */
const attempts = () => process.getActiveResourcesInfo().filter((name) => /ConnectWrap$/.test(name)).length;

for (const [what, api, options] of [
  ['net', net, {}],
  ['a server that pairs by address', repnet, { pairing: 'address' }],
])
  test(`rolled back to ${what}: the flow in which it shows is an error, the next is plain`, async (t) => {
    const { server } = lines(repnet, t, { pairing: 'token' });
    await listen(server);
    const { port } = server.address();
    assert.equal(await ask(t, port), 'answer');
    await until(() => repnet.stats().flowsPlain === 1);
    await until(async () => {
      assert.equal(await ask(t, port), 'answer');
      return repnet.stats().flowsFlow > 0;
    }, 'the server is known');
    await new Promise((resolve) => server.close(resolve));
    const after = lines(api, t, options);
    await listen(after.server, port);
    t.after(() => after.server.close());
    assert.equal(await ask(t, port), 'ERR_REPNET_PROTOCOL');
    for (let n = 0; n < 3; n++) assert.equal(await ask(t, port), 'answer');
    assert.deepEqual(after.got, ['hello\n', 'hello\n', 'hello\n']);
  });

test('a server that stands still for longer than T is waited for, as by net', {
  skip: process.platform === 'win32' ? 'no SIGSTOP' : false,
}, async (t) => {
  const child = fork(fileURLToPath(new URL('lib/token-server.mjs', import.meta.url)));
  t.after(() => child.kill('SIGKILL'));
  const port = await messageOf(child);
  child.kill('SIGSTOP');
  const clock = movedClock();
  t.after(() => clock.stop());
  const answers = Array.from({ length: 5 }, () => ask(t, port, { peer: 'repnet' }));
  await settle();
  await until(() => attempts() === 0, 'all connections are established');
  // The next would be asked beside a plain flow.
  clock.tick(2 * defaults.pairTimeout);
  await settle();
  child.kill('SIGCONT');
  assert.deepEqual(await Promise.all(answers), Array(5).fill('answer'));
  child.send('count');
  assert.equal(await messageOf(child), 5, 'one connection for each flow');
});

test('neither is the first connection answered within T, nor is the second there any more that was: it is waited for', async (t) => {
  const faults = [
    { copy: 0, direction: 'down', kind: 'pause', at: 0, ms: 3 * defaults.pairTimeout },
    { copy: 1, direction: 'down', kind: 'cut', at: 24 },
  ];
  const relay = await startRelay({ faultsFor: (_, copy) => faults.filter((fault) => fault.copy === copy) });
  t.after(() => relay.close());
  const addresses = [`${relay.host}:${relay.port}`];
  const { server, got } = lines(repnet, t, { pairing: 'token', addresses });
  await listen(server);
  t.after(() => server.close());
  relay.targetPort = server.address().port;
  assert.equal(await ask(t, relay.port, { host: relay.host, peer: 'repnet' }), 'answer');
  assert.deepEqual(got, ['hello\n']);
});

test('the hello of the first connection is not answered within T, that of the second is: the flow goes on by the second', async (t) => {
  const relay = await startRelay({
    faultsFor: (_, copy) => (copy === 0 ? [{ copy, direction: 'down', kind: 'stall', at: 0 }] : []),
  });
  t.after(() => relay.close());
  const { server, got } = lines(repnet, t, { pairing: 'token', addresses: [`${relay.host}:${relay.port}`] });
  await listen(server);
  t.after(() => server.close());
  relay.targetPort = server.address().port;
  const socket = repnet.connect({
    host: relay.host,
    port: relay.port,
    replicate: 'flow',
    pairing: 'token',
    peer: 'repnet',
  });
  t.after(() => socket.destroy());
  socket.write('hel');
  await until(() => repnet.stats().flowsPaired === 1);
  await until(() => repnet.stats().copiesFailed > 0, 'the first is given up');
  const answer = new Promise((resolve) => socket.once('data', (chunk) => resolve(chunk.toString())));
  socket.write('lo\n');
  assert.equal(await answer, 'answer');
  assert.deepEqual(got, ['hello\n']);
});
