/**
 * What a client that nobody knows can make a server send and keep by the second port (docs/threat-model.md, "What a
 * connection can cost"): counted in bytes, from raw connections.
 */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { ReceiveMachine } from '../dist/flow/machine.js';
import repnet from '../dist/index.js';
import { Archive, archiveSize } from '../dist/memory/archive.js';
import { WaitingList } from '../dist/memory/waiting.js';
import { ANSWER_BYTES, dataHeader, HELLO_BYTES, Kind, RECORD_HEADER_BYTES } from '../dist/wire.js';
import { data, defaults, grown, hello, ownPort, raw, settle, until } from './lib/support.mjs';

before(() => {
  Object.assign(defaults, { waitTimeout: 400, pairTimeout: 300 });
});

/** A server whose application reads and says nothing, unless `reply` does. */
async function server(t, options = {}, reply = () => {}) {
  const seen = { sockets: [] };
  const server = repnet.createServer(options, (socket) => {
    seen.sockets.push(socket);
    socket.on('error', () => {}).resume();
    reply(socket);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    for (const socket of seen.sockets) socket.destroy();
    server.close();
  });
  return Object.assign(seen, { port: server.address().port });
}

test('not a byte is sent before a hello is whole', async (t) => {
  const { port } = await server(t);
  await grown();
  const client = await raw(t, port + 1, { noDelay: true });
  const bytes = hello(client, port, { kind: Kind.probe });
  for (let n = 0; n < HELLO_BYTES - 1; n++) {
    client.socket.write(bytes.subarray(n, n + 1));
    await new Promise((resolve) => setImmediate(resolve));
  }
  await settle();
  assert.equal(client.bytes.length, 0);
  client.socket.write(bytes.subarray(HELLO_BYTES - 1));
  await until(() => client.closed);
  assert.equal(client.bytes.length, ANSWER_BYTES);
});

test('bytes that are no hello are answered by nothing', async (t) => {
  const { port } = await server(t);
  for (const garbage of ['GET / HTTP/1.1\r\n\r\n', '\x9eRepNet\x02', '\r\n', '\0'.repeat(1_000)]) {
    const client = await raw(t, port + 1);
    client.socket.write(garbage, 'latin1');
    await until(() => client.closed);
    assert.equal(client.bytes.length, 0);
  }
});

for (const [what, fields, most] of [
  ['a probe', { kind: Kind.probe }, ANSWER_BYTES],
  ['a replica that is refused', { sourcePort: 1 }, ANSWER_BYTES],
  ['a replica that starts a flow', {}, ANSWER_BYTES],
  ['the winner of a RepSYN race', { kind: Kind.raw }, 0],
  ['an unknown kind', { kind: 9 }, ANSWER_BYTES],
])
  test(`hello upon hello on one connection, ${what}: ${most} bytes`, async (t) => {
    const { port } = await server(t);
    await grown();
    const client = await raw(t, port + 1);
    for (let n = 0; n < 50 && !client.closed; n++) {
      client.socket.write(hello(client, port, fields));
      await settle(2);
    }
    await settle();
    // A connection that is closed with bytes unread may lose the answer.
    assert.ok(client.bytes.length <= most, `${client.bytes.length} bytes`);
  });

test('records of any size and a threshold of nothing: the server says at most a quarter of what it is told', async (t) => {
  const { sockets, port } = await server(t);
  await grown();
  const client = await raw(t, port + 1, { noDelay: true });
  client.socket.write(hello(client, port, { threshold: 0 }));
  const RECORDS = 5_000;
  // One by one for a while, then all that is left in one piece.
  for (let n = 0; n < 500; n++) {
    client.socket.write(data(n, 'x'));
    await new Promise((resolve) => setImmediate(resolve));
  }
  const rest = [];
  for (let n = 500; n < RECORDS; n++) rest.push(data(n, 'x'));
  client.socket.write(Buffer.concat(rest));
  await until(() => sockets[0]?.bytesRead === RECORDS);
  await settle();
  const told = HELLO_BYTES + RECORDS * (RECORD_HEADER_BYTES + 1);
  assert.ok(client.bytes.length - ANSWER_BYTES <= told / 4, `${client.bytes.length} bytes for ${told}`);
});

/** Both connections of one flow from one place; `second` when the application has replied on the first. */
async function replied(t, port, expected) {
  const localPort = ownPort();
  const first = await raw(t, port, { localPort });
  first.socket.write('?');
  await until(() => first.bytes.length === expected, 'the reply on the first');
  const second = await raw(t, port + 1, { localPort });
  second.socket.write(hello(second, port));
  await until(() => second.bytes.length >= ANSWER_BYTES);
  await settle();
  return second.bytes.length - ANSWER_BYTES;
}

test('a second connection gets what was written once more, and not if that is more than the threshold', async (t) => {
  for (const [written, repeated] of [
    [10_000, 10_000 + RECORD_HEADER_BYTES],
    [10_001, 0],
    [1_000_000, 0],
  ]) {
    const { port } = await server(t, { threshold: 10_000 }, (socket) =>
      socket.once('data', () => socket.write(Buffer.alloc(written))),
    );
    assert.equal(await replied(t, port, written), repeated, `${written} bytes written`);
  }
});

test('what was written byte by byte is repeated in a few records', async (t) => {
  const { port } = await server(t, {}, (socket) =>
    socket.once('data', () => {
      for (let n = 0; n < 5_000; n++) socket.write('x');
    }),
  );
  assert.ok((await replied(t, port, 5_000)) < 5_000 + 20 * RECORD_HEADER_BYTES);
});

for (const size of [1, 7, 100, 5_000, 20_000])
  test(`an archive takes at most twice what it counts and a block, in writes of ${size} bytes`, (t) => {
    const archive = new Archive();
    t.after(() => archive.drop());
    const written = Buffer.alloc(100_000);
    for (let at = 0; at < written.length; at += size) {
      const piece = written.subarray(at, at + size).fill((at / size) % 251);
      assert.equal(archive.push(piece), true);
    }
    assert.ok(Buffer.concat(archive.parts).equals(written), 'nothing lost or moved');
    const blocks = new Set(archive.parts.map(({ buffer }) => buffer));
    const taken = [...blocks].reduce((sum, { byteLength }) => sum + byteLength, 0);
    assert.ok(taken <= 2 * written.length + 16_384, `${taken} bytes`);
    assert.ok(archive.parts.length <= 24 + written.length / size, `${archive.parts.length} parts`);
    if (size < 1_000) assert.ok(archive.parts.length < 40, `${archive.parts.length} parts`);
    assert.equal(archiveSize(), written.length);
  });

test('a piece of one byte that comes early counts for what it takes', () => {
  const rx = new ReceiveMachine();
  const read = Buffer.alloc(65_536);
  for (let n = 0; n < 100; n++) rx.keepEarly(10 + 2 * n, read.subarray(n, n + 1));
  assert.ok(rx.earlyBytes >= 100 * 200, `${rx.earlyBytes}`);
  assert.ok(
    rx.early.every(({ bytes }) => bytes.buffer !== read.buffer),
    'what was read with it is not kept',
  );
  rx.acceptPlain(10);
  while (rx.delivered < 10 + 2 * 100) {
    rx.acceptPlain(1);
    rx.takeEarly();
  }
  assert.equal(rx.earlyBytes, 0);
});

test('a flow waits for its other connection for as long as its hello says, but for four waits more at most', (t) => {
  const timeout = 3_000;
  const list = new WaitingList({ timeout, entries: 10 }, () => {});
  t.after(() => list.clear());
  const wait = (patience) => {
    const { until, awaited } = list.add(`${patience}`, 'replica', {}, { token: Buffer.alloc(16), patience });
    return { until, awaited };
  };
  assert.notDeepEqual(wait(timeout), wait(4 * timeout));
  assert.deepEqual(wait(2 ** 32 - 1), wait(4 * timeout));
});

test('records of one byte far ahead of the stream: the server stops reading soon', async (t) => {
  const { sockets, port } = await server(t);
  const localPort = ownPort();
  const first = await raw(t, port, { localPort });
  await until(() => sockets.length === 1);
  const second = await raw(t, port + 1, { localPort });
  second.socket.write(hello(second, port));
  const records = [];
  for (let n = 0; n < 90_000; n++) records.push(dataHeader(1_000 + 2 * n, 1), Buffer.of(n));
  const megabyte = Buffer.concat(records);
  for (let n = 0; n < 32; n++) second.socket.write(megabyte);
  await settle();
  assert.ok(second.socket.writableLength > 16 * megabyte.length, 'the server has stopped reading them');
  first.socket.write('goes on');
  await until(() => sockets[0].bytesRead >= 7);
});
