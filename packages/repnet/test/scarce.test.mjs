/** Where descriptors or source ports are few the second connection leaves them to the first, and nobody is blamed for it. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { before, beforeEach, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { forgetPeers, peerKey, recallPeer } from '../dist/client/peers.js';
import repnet from '../dist/index.js';
import { newHandle } from '../dist/net-internals.js';
import { defaults, echo, echoServer } from './lib/support.mjs';

before(() => {
  Object.assign(defaults, { waitTimeout: 300, pairTimeout: 300 });
});
beforeEach(() => {
  forgetPeers();
  repnet.resetStats();
});

/** Binding fails with these numbers in turn; 0 succeeds, as does what comes after. */
function bindFails(t, ...statuses) {
  const native = Object.getPrototypeOf(newHandle());
  const { bind } = native;
  native.bind = function (...args) {
    const status = statuses.shift() ?? 0;
    return status === 0 ? bind.apply(this, args) : status;
  };
  t.after(() => Object.assign(native, { bind }));
}

const dial = (t, port) => {
  const socket = repnet.connect({ host: '127.0.0.1', port, replicate: 'flow', peer: 'repnet' });
  t.after(() => socket.destroy());
  return socket;
};

const SHORTAGES = { EMFILE: -24, ENFILE: -23 };

for (const [code, status] of Object.entries(SHORTAGES)) {
  test(`${code} on the second connection: the flow goes by the first, and the server is not struck`, async (t) => {
    const { port } = await echoServer(t);
    // The second begins first.
    bindFails(t, status);
    assert.equal(await echo(dial(t, port), 'hello'), 'hello');
    assert.equal(recallPeer(peerKey('127.0.0.1', port, port + 1)), undefined);
    assert.equal(repnet.stats().foreignPeers, 0);
  });

  test(`${code} on the first connection: it is tried again with what the second has given back`, async (t) => {
    const { port, sockets } = await echoServer(t);
    bindFails(t, 0, status);
    const socket = dial(t, port);
    assert.equal(await echo(socket, 'hello'), 'hello');
    assert.equal(repnet.info(socket).mode, false);
    assert.equal(sockets.length, 1);
  });
}

for (const [code, status] of Object.entries({ EADDRINUSE: -98, EADDRNOTAVAIL: -99 }))
  for (const which of ['second', 'first'])
    test(`${code} on the ${which} connection begins the flow again, of which each event is told once`, async (t) => {
      const { port } = await echoServer(t);
      bindFails(t, ...(which === 'second' ? [status] : [0, status]));
      const socket = dial(t, port);
      const told = [];
      for (const event of ['connectionAttempt', 'connect', 'ready']) socket.on(event, () => told.push(event));
      assert.equal(await echo(socket, 'hello'), 'hello');
      // More than once where the port after it is another process's.
      assert.ok(repnet.stats().portRetries >= 1);
      assert.deepEqual(told, ['connectionAttempt', 'connect', 'ready']);
    });

test('a process that may open 300 descriptors has 220 flows, as with net, of which the first are replicated', async (t) => {
  const { port } = await echoServer(t);
  const child = fileURLToPath(new URL('lib/scarce-child.mjs', import.meta.url));
  const shell = spawn('sh', [
    '-c',
    'ulimit -n 300; exec "$0" "$1" "$2"',
    process.execPath,
    child,
    String(port),
  ]);
  let said = '';
  shell.stdout.on('data', (chunk) => (said += chunk));
  await once(shell, 'close');
  const { answered, failed, copies } = JSON.parse(said);
  assert.deepEqual([answered, failed], [220, []]);
  assert.ok(copies > 0 && copies < 100, `${copies} second connections`);
});
