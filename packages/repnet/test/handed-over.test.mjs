/** A listening server that is sent to another process, which then accepts on its first port, too. */
import assert from 'node:assert/strict';
import { fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { beforeEach, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import repnet from '../dist/index.js';
import { AnswerFlag, decodeAnswer, Kind } from '../dist/wire.js';
import { defaults, hello, messageOf, raw, until } from './lib/support.mjs';

const HOST = '127.0.0.1';
const FLOWS = 40;
Object.assign(defaults, { waitTimeout: 300, pairTimeout: 250 });
beforeEach(() => repnet.resetStats());

async function listening(t, requests, options = {}) {
  const server = repnet.createServer(options, (socket) => {
    socket
      .on('error', () => {})
      .on('data', (chunk) => {
        requests.push(chunk.toString());
        socket.write(chunk);
      });
  });
  await new Promise((resolve) => server.listen(0, HOST, resolve));
  t.after(() => server.close());
  return { server, port: server.address().port };
}

/** Whether the server tells those who ask that other processes may accept on its address. */
async function isShared(t, port) {
  const asks = await raw(t, port + 1);
  asks.socket.write(hello(asks, port, { kind: Kind.probe }));
  await until(() => asks.bytes.length > 0);
  return (decodeAnswer(asks.bytes).flags & AnswerFlag.shared) !== 0;
}

/** Until flows may begin with their second connection: a server that has just begun holds them back. */
async function grown(t, port) {
  await until(async () => {
    const asks = await raw(t, port + 1);
    asks.socket.write(hello(asks, port));
    await until(() => asks.bytes.length > 0 || asks.closed);
    return decodeAnswer(asks.bytes)?.refusal === 0;
  }, 'a flow begins with its second connection');
}

test('sent to a child while it listens: each request reaches one of the two processes', async (t) => {
  const requests = [];
  const { server, port } = await listening(t, requests);
  await grown(t, port);
  assert.equal(await isShared(t, port), false);
  const child = fork(fileURLToPath(new URL('lib/handed-server.mjs', import.meta.url)));
  t.after(() => child.kill('SIGKILL'));
  child.send('server', server);
  assert.equal(await messageOf(child), 'ready');
  assert.equal(await isShared(t, port), true);
  const texts = Array.from({ length: FLOWS }, (_, n) => `request ${n}`);
  for (const text of texts) {
    const socket = repnet.connect({ host: HOST, port, replicate: 'flow', peer: 'repnet' });
    t.after(() => socket.destroy());
    socket.on('error', () => {}).write(text);
    assert.equal((await once(socket, 'data'))[0].toString(), text);
  }
  child.send('report');
  const theirs = await messageOf(child);
  assert.deepEqual([...requests, ...theirs].sort(), texts.sort());
});

test('what a server is asked by its own methods hands nothing over', async (t) => {
  const requests = [];
  const { server, port } = await listening(t, requests);
  server.address();
  server.unref();
  server.ref();
  assert.equal(server.listening, true);
  await new Promise((resolve) => server.getConnections(resolve));
  const socket = await raw(t, port);
  socket.socket.end();
  await until(() => socket.closed);
  assert.equal(await isShared(t, port), false);
  // Nor does who reads the handle, which has no effect.
  assert.notEqual(server._handle, null);
  assert.equal(await isShared(t, port), false);
});

const SENT = {
  'its handle, by itself': (server, on) => on.child.send('server', server._handle),
  'its handle, as one of the stdio': (server, on) => on.spawn(server._handle),
  'its descriptor, as one of the stdio': (server, on) => on.spawn(server._handle.fd),
};
for (const [what, send] of Object.entries(SENT))
  test(`sent as ${what}: others accept there, until it is another that listens`, async (t) => {
    const { server, port } = await listening(t, []);
    const child = fork(fileURLToPath(new URL('lib/handed-server.mjs', import.meta.url)));
    t.after(() => child.kill('SIGKILL'));
    const children = [];
    t.after(() => {
      for (const each of children) each.kill('SIGKILL');
    });
    assert.equal(await isShared(t, port), false);
    send(server, {
      child,
      spawn: (what) => children.push(spawn('sleep', ['60'], { stdio: ['ignore', 'ignore', 'ignore', what] })),
    });
    assert.equal(await isShared(t, port), true);
    for (const each of [child, ...children]) each.kill('SIGKILL');
    await new Promise((resolve) => server.close(resolve));
    await new Promise((resolve) => server.listen(0, HOST, resolve));
    assert.equal(await isShared(t, server.address().port), false);
  });
