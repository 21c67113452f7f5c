/** The bounds of the wire format, over connections: a peer that says the least or the most of everything ends nobody's process. */
import assert from 'node:assert/strict';
import net from 'node:net';
import { before, beforeEach, test } from 'node:test';
import { forgetPeers } from '../dist/client/peers.js';
import repnet from '../dist/index.js';
import { dataHeader, encodeAnswer, HELLO_BYTES, STREAM_MAX_BYTES } from '../dist/wire.js';
import { data, defaults, echo, echoServer, hello, ownPort, raw, settle, until } from './lib/support.mjs';

before(() => {
  Object.assign(defaults, { waitTimeout: 300, pairTimeout: 300 });
});
beforeEach(() => forgetPeers());

/** A record of `length` bytes at `offset`. */
const record = (offset, length) => Buffer.concat([dataHeader(offset, length), Buffer.alloc(length)]);

for (const [what, offset, length, kept] of [
  ['ends at the last byte that a stream can have', STREAM_MAX_BYTES - 100, 100, true],
  ['ends one byte behind it', STREAM_MAX_BYTES - 99, 100, false],
  ['begins at the last offset there is', STREAM_MAX_BYTES, 100, false],
])
  test(`a record that ${what} costs its connection ${kept ? 'nothing' : 'and nothing else'}`, async (t) => {
    const { port, sockets } = await echoServer(t, { threshold: 1 });
    const localPort = ownPort();
    const first = await raw(t, port, { localPort });
    await until(() => sockets.length === 1);
    const second = await raw(t, port + 1, { localPort });
    second.socket.write(hello(second, port));
    await until(() => second.bytes.length > 0);
    second.socket.write(record(offset, length));
    await (kept ? settle() : until(() => second.closed));
    assert.equal(second.closed, !kept);
    // A report is due, if the second connection is there for it.
    first.socket.write('x'.repeat(200));
    await until(() => first.bytes.length === 200, 'the echo');
    const plain = net.connect(port, '127.0.0.1');
    t.after(() => plain.destroy());
    assert.equal(await echo(plain, 'still there'), 'still there');
  });

test('a server whose records lie at the end of the longest stream costs a client that copy and nothing else', async (t) => {
  const served = [];
  const first = net.createServer((s) => s.on('error', () => {}).on('data', () => s.write('reply')));
  const second = net.createServer((s) => {
    served.push(s.on('error', () => {}));
    s.once('data', () => {
      const { port } = first.address();
      s.write(encodeAnswer({ refusal: 0, flags: 0, threshold: 1, port, version: 2 }));
      s.write(record(STREAM_MAX_BYTES, 100));
    });
  });
  const port = ownPort();
  for (const [server, p] of [
    [first, port],
    [second, port + 1],
  ]) {
    await new Promise((resolve) => server.listen(p, '127.0.0.1', resolve));
    t.after(() => server.close());
  }
  const socket = repnet.connect({ port, host: '127.0.0.1', replicate: 'flow', peer: 'repnet' });
  t.after(() => socket.destroy());
  assert.equal(await echo(socket, 'hello'), 'reply');
  await until(() => served.every((s) => s.destroyed));
});

test('records beyond a hole are not read on past the limit, though each read ends with a record that is old', async (t) => {
  const { sockets, port } = await echoServer(t);
  const localPort = ownPort();
  const primary = await raw(t, port, { localPort });
  await until(() => sockets.length === 1);
  primary.socket.write('begun');
  await until(() => primary.bytes.length === 5);
  const replica = await raw(t, port + 1, { localPort });
  replica.socket.write(hello(replica, port));
  const old = data(0, 'b');
  const ahead = [];
  for (let n = 0; n < 2_000; n++) ahead.push(record(100 + 2 * n, 1), old);
  const flood = Buffer.concat(ahead);
  const most = 32 * 1024 * 1024;
  for (let sent = 0; sent < 2 * most; sent += flood.length) replica.socket.write(flood);
  await settle();
  assert.ok(
    replica.socket.writableLength > most,
    `${replica.socket.writableLength} bytes wait at the client`,
  );
  primary.socket.write('goes on');
  await until(() => primary.bytes.toString() === 'begungoes on');
});

const BOUNDS = {
  kind: [0, 1, 2, 3, 4, 5, 255],
  flags: [0, 1, 2, 3, 4, 5, 6, 7, 8, 255],
  version: [1, 2, 3, 255],
  threshold: [0, 1, 2 ** 32 - 2, 2 ** 32 - 1],
  patience: [0, 1, 2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1],
  sourcePort: [0, 1, 65_534, 65_535],
  targetPort: [0, 1, 65_534, 65_535],
  sourceAddress: ['', '0.0.0.0', '255.255.255.255', '::', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
  targetAddress: ['', '0.0.0.0', '255.255.255.255', '::', 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'],
};

test('hellos with any field at its bounds, on either port, leave the server serving', async (t) => {
  const { port } = await echoServer(t);
  const all = [];
  for (const [field, values] of Object.entries(BOUNDS))
    for (const value of values)
      for (const to of [port, port + 1]) {
        const connection = await raw(t, to);
        connection.socket.write(hello(connection, port, { [field]: value }));
        connection.socket.end(data(0, 'hostile'));
        all.push(connection);
      }
  await until(() => all.every((connection) => connection.closed || connection.ended), 'each is over');
  const socket = repnet.connect({ port, host: '127.0.0.1', replicate: 'flow', peer: 'repnet' });
  t.after(() => socket.destroy());
  assert.equal(await echo(socket, 'still there'), 'still there');
});

test('answers with any field at its bounds leave a client with its first connection', async (t) => {
  const usual = { refusal: 0, flags: 0, threshold: 100_000, version: 2 };
  const bounds = {
    refusal: [0, 1, 6, 7, 255],
    flags: [0, 1, 2, 3, 255],
    version: [0, 1, 3, 255],
    threshold: [0, 1, 2 ** 32 - 1],
    port: [0, 1, 65_535],
  };
  let said;
  const port = ownPort();
  const first = net.createServer((s) => s.on('error', () => {}).pipe(s));
  const second = net.createServer((s) => {
    let heard = 0;
    s.on('error', () => {}).on('data', (chunk) => {
      heard += chunk.length;
      if (heard - chunk.length < HELLO_BYTES && heard >= HELLO_BYTES) s.write(encodeAnswer(said));
    });
  });
  for (const [server, p] of [
    [first, port],
    [second, port + 1],
  ]) {
    await new Promise((resolve) => server.listen(p, '127.0.0.1', resolve));
    t.after(() => server.close());
  }
  for (const [field, values] of Object.entries(bounds))
    for (const value of values) {
      said = { ...usual, port, [field]: value };
      const socket = repnet.connect({ port, host: '127.0.0.1', replicate: 'flow', peer: 'repnet' });
      assert.equal(await echo(socket, 'hello'), 'hello', `${field} ${value}`);
      socket.destroy();
      forgetPeers();
    }
});
