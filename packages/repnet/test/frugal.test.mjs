/** What a flow makes, and keeps: nothing that only few flows need. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { beforeEach, test } from 'node:test';
import { newToken } from '../dist/client/dialing.js';
import { forgetPeers } from '../dist/client/peers.js';
import { FirstOf } from '../dist/flow/callbacks.js';
import repnet from '../dist/index.js';
import { attachment } from '../dist/socket-internals.js';
import { defaults, echo, echoServer, until } from './lib/support.mjs';

beforeEach(() => {
  forgetPeers();
  Object.assign(defaults, { waitTimeout: 300, pairTimeout: 300 });
});

test('a flow whose application reads before it is connected has no bridge for native code', async (t) => {
  const { port, sockets } = await echoServer(t);
  const socket = repnet.connect({ host: '127.0.0.1', port, replicate: 'flow', peer: 'repnet' });
  t.after(() => socket.destroy());
  // Reading begins here, when the socket is still connecting.
  socket.on('data', () => {});
  await once(socket, 'connect');
  await echo(socket, 'twelve bytes');
  await until(() => repnet.info(socket).paired && repnet.info(sockets[0]).paired, 'both ends know of both');
  assert.equal(attachment(socket).bridge, undefined);
  assert.equal(attachment(sockets[0]).bridge, undefined);
  // Who asks gets one.
  assert.notEqual(socket._handle, null);
  assert.notEqual(attachment(socket).bridge, undefined);
});

test('tokens are parts of blocks of their own, and are not written to again', () => {
  const tokens = Array.from({ length: 600 }, newToken);
  const said = tokens.map((token) => token.toString('hex'));
  for (const token of tokens) {
    assert.equal(token.length, 16);
    // A block that other buffers share would be kept by each of them.
    assert.equal(token.buffer.byteLength, 4096);
  }
  assert.equal(new Set(said).size, tokens.length);
  for (let i = 0; i < 600; i++) newToken();
  assert.deepEqual(
    tokens.map((token) => token.toString('hex')),
    said,
  );
  // At most four blocks hold 600 tokens, whichever the first began in.
  assert.ok(new Set(tokens.map((token) => token.buffer)).size <= 4);
});

test('the first of several writes: the outcome is told once all are begun, and once', () => {
  const failed = new Error('failed');
  const run = (...steps) => {
    const told = [];
    const first = new FirstOf((error) => told.push(error ?? null));
    for (const step of steps) {
      if (typeof step === 'number') first.begun(step);
      else first.callback(step);
    }
    return { told, pending: first.pending };
  };
  assert.deepEqual(run(null), { told: [], pending: false });
  assert.deepEqual(run(null, 2), { told: [null], pending: false });
  assert.deepEqual(run(2, null, failed), { told: [null], pending: false });
  assert.deepEqual(run(failed, 2), { told: [], pending: true });
  assert.deepEqual(run(failed, 2, null), { told: [null], pending: false });
  assert.deepEqual(run(failed, failed, 2), { told: [failed], pending: false });
  assert.deepEqual(run(2, failed, failed), { told: [failed], pending: false });
  assert.deepEqual(run(failed, 1), { told: [failed], pending: false });
  // One more is begun while the first is under way.
  assert.deepEqual(run(1, 2, failed), { told: [], pending: true });
  assert.deepEqual(run(1, 2, failed, null), { told: [null], pending: false });
});
