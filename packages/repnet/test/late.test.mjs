/**
 * A connection that comes after the server's application has closed the flow: the other may have failed under the last
 * bytes, so it brings them, and the end, as long as the wait for it lasts. Raw connections keep the order of events.
 */
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import repnet from '../dist/index.js';
import { archiveSize } from '../dist/memory/archive.js';
import { ANSWER_BYTES, controlRecord, decodeAnswer, Record, RecordParser, Refusal } from '../dist/wire.js';
import { movedClock } from './lib/moved-clock.mjs';
import { data, defaults, echoServer, grown, hello as helloOf, ownPort, raw, until } from './lib/support.mjs';

const REQUEST = 'a request';
const REPLY = 'the reply'.repeat(1_000);

beforeEach(() => {
  Object.assign(defaults, { waitTimeout: 10_000, pairTimeout: 300, archiveBytes: 64 * 1024 * 1024 });
  repnet.resetStats();
});

/** Replies when the request has ended, and closes: every flow of it is over at once. */
async function replyServer(t, options = {}, reply = REPLY) {
  const seen = { requests: [], closed: 0, errors: 0 };
  const server = repnet.createServer(options, (socket) => {
    let request = '';
    socket.on('data', (chunk) => {
      request += chunk;
    });
    socket.on('end', () => {
      seen.requests.push(request);
      socket.end(reply);
    });
    socket.on('error', () => seen.errors++);
    socket.on('close', () => seen.closed++);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  return { server, seen, port: server.address().port };
}

/** Of a client that takes as long as any test. */
const hello = (connection, port, fields = {}) => helloOf(connection, port, { patience: 600_000, ...fields });
const end = (offset) => controlRecord(Record.end, offset);

/** The answer and the records that a connection has received. */
function received(connection) {
  const seen = { refusal: undefined, text: '', total: undefined, reset: false };
  if (connection.bytes.length < ANSWER_BYTES) return seen;
  seen.refusal = decodeAnswer(connection.bytes)?.refusal;
  new RecordParser().feed(Buffer.from(connection.bytes.subarray(ANSWER_BYTES)), {
    onData: (offset, bytes) => {
      assert.equal(offset, seen.text.length);
      seen.text += bytes.toString('latin1');
    },
    onControl: (type, offset) => {
      if (type === Record.end) seen.total = offset;
      if (type === Record.reset) seen.reset = true;
    },
  });
  return seen;
}

/** A first connection whose client never reads: request, FIN, and the server has replied and closed. */
async function stalledFirst(t, { port, seen }, request = REQUEST) {
  const localPort = ownPort();
  const first = await raw(t, port, { localPort });
  first.socket.pause();
  first.socket.end(request);
  const before = seen.closed;
  await until(() => seen.closed === before + 1, 'the server has closed the flow');
  return localPort;
}

test('a second connection whose hello comes after the close brings reply and end', async (t) => {
  const server = await replyServer(t);
  const localPort = await stalledFirst(t, server);
  const late = await raw(t, server.port + 1, { localPort, allowHalfOpen: true });
  late.socket.write(Buffer.concat([hello(late, server.port), data(0, REQUEST), end(REQUEST.length)]));
  await until(() => late.ended, 'the server ends the connection');
  assert.deepEqual(received(late), {
    refusal: Refusal.none,
    text: REPLY,
    total: REPLY.length,
    reset: false,
  });
  assert.deepEqual(server.seen.requests, [REQUEST], 'one request, once');
  assert.equal(repnet.stats().lateServed, 1);
  assert.equal(archiveSize(), 0, 'nothing is held any more');
  late.socket.end();
  await until(() => late.closed);
  assert.equal(late.error, undefined);
});

test('records that follow the hello piece by piece make no difference', async (t) => {
  const server = await replyServer(t);
  const localPort = await stalledFirst(t, server);
  const late = await raw(t, server.port + 1, { localPort, allowHalfOpen: true, noDelay: true });
  for (const byte of Buffer.concat([hello(late, server.port), data(0, REQUEST), end(REQUEST.length)])) {
    late.socket.write(Buffer.of(byte));
    await new Promise((resolve) => setImmediate(resolve));
  }
  await until(() => late.ended);
  assert.equal(received(late).text, REPLY);
  assert.equal(received(late).total, REPLY.length);
});

test('a closed flow is joined once: a third connection is refused', async (t) => {
  const server = await replyServer(t);
  const localPort = await stalledFirst(t, server);
  const late = await raw(t, server.port + 1, { localPort, allowHalfOpen: true });
  late.socket.end(Buffer.concat([hello(late, server.port), end(REQUEST.length)]));
  await until(() => late.closed);
  assert.equal(received(late).text, REPLY);
  const third = await raw(t, server.port + 1, { localPort });
  third.socket.write(hello(third, server.port));
  await until(() => third.bytes.length >= ANSWER_BYTES);
  assert.equal(received(third).refusal, Refusal.late);
});

for (const [patience, refusal] of [
  [7_500, Refusal.none],
  [2_500, Refusal.late],
])
  test(`a hello three quarters of the wait later, of a client that waits for ${patience} of 10,000 ms: ${refusal === Refusal.none ? 'the reply' : "another flow's, from the same port, and no reply"}`, async (t) => {
    const clock = movedClock();
    t.after(() => clock.stop());
    const server = await replyServer(t);
    const localPort = await stalledFirst(t, server);
    clock.tick(7_500);
    const late = await raw(t, server.port + 1, { localPort });
    late.socket.write(Buffer.concat([hello(late, server.port, { patience }), end(REQUEST.length)]));
    await until(() => late.closed || late.ended);
    const { refusal: said, text } = received(late);
    assert.deepEqual([said, text], [refusal, refusal === Refusal.none ? REPLY : '']);
  });

test('after the wait nothing is kept, and the second connection is refused', async (t) => {
  defaults.waitTimeout = 400;
  const server = await replyServer(t);
  const localPort = await stalledFirst(t, server);
  await until(() => archiveSize() === 0, 'the archive is dropped when the wait is over');
  const late = await raw(t, server.port + 1, { localPort });
  late.socket.write(hello(late, server.port));
  await until(() => late.bytes.length >= ANSWER_BYTES);
  assert.equal(received(late).refusal, Refusal.late);
});

test('a request that the FIN of the first connection cut off is an error, never an end', async (t) => {
  const server = await replyServer(t);
  const localPort = await stalledFirst(t, server, REQUEST.slice(0, 4));
  const late = await raw(t, server.port + 1, { localPort, allowHalfOpen: true });
  late.socket.write(hello(late, server.port));
  await until(() => received(late).text === REPLY);
  assert.equal(received(late).total, undefined, 'no end before the client has said where its stream ends');
  late.socket.write(Buffer.concat([data(0, REQUEST), end(REQUEST.length)]));
  await until(() => late.ended);
  assert.equal(received(late).total, undefined);
  assert.equal(received(late).reset, true);
});

test("a socket that the application destroys with another's read error is closed at once, though its host pairs", async (t) => {
  const { sockets, port } = await echoServer(t);
  const pairing = ownPort();
  await raw(t, port, { localPort: pairing });
  const usual = await raw(t, port + 1, { localPort: pairing });
  usual.socket.write(hello(usual, port));
  await until(() => repnet.stats().flowsPaired === 1, 'the host is one that pairs');
  const localPort = ownPort();
  await raw(t, port, { localPort });
  await until(() => sockets.length === 2);
  const heard = [];
  for (const event of ['error', 'close']) sockets[1].on(event, () => heard.push(event));
  const reset = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET', syscall: 'read' });
  assert.equal(sockets[1].destroy(reset).destroyed, true);
  const late = await raw(t, port + 1, { localPort });
  late.socket.write(hello(late, port));
  await until(() => late.bytes.length >= ANSWER_BYTES);
  assert.equal(received(late).refusal, Refusal.late);
  assert.deepEqual(heard, ['error', 'close']);
});

test('a server that closes without waiting for the end of the request is taken at its word', async (t) => {
  let closed = false;
  const server = repnet.createServer((socket) => {
    socket.once('data', () => {
      socket.end(REPLY);
      socket.destroySoon();
    });
    socket.on('close', () => {
      closed = true;
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  const { port } = server.address();
  const localPort = ownPort();
  const first = await raw(t, port, { localPort });
  first.socket.pause().write(REQUEST);
  await until(() => closed);
  const late = await raw(t, port + 1, { localPort });
  late.socket.write(Buffer.concat([hello(late, port), data(0, REQUEST)]));
  await until(() => received(late).total !== undefined);
  assert.equal(received(late).text, REPLY);
});

test('a reset flow is not revived', async (t) => {
  let accepted;
  const server = repnet.createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => {
      socket.write(REPLY, () => socket.resetAndDestroy());
      accepted = socket;
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  const { port } = server.address();
  const localPort = ownPort();
  const first = await raw(t, port, { localPort });
  first.socket.write(REQUEST);
  await until(() => accepted?.closed);
  const late = await raw(t, port + 1, { localPort });
  late.socket.write(hello(late, port));
  await until(() => late.bytes.length >= ANSWER_BYTES);
  assert.equal(received(late).refusal, Refusal.late);
});

test('a first connection that comes after the close brings the reply as a plain stream', async (t) => {
  defaults.waitTimeout = 1_000;
  const server = await replyServer(t);
  // A server that has just begun lets no flow start with its second connection.
  await grown();
  const localPort = ownPort();
  const second = await raw(t, server.port + 1, { localPort, allowHalfOpen: true });
  second.socket.pause();
  const said = hello(second, server.port, { patience: 100 });
  second.socket.write(Buffer.concat([said, data(0, REQUEST), end(REQUEST.length)]));
  await until(() => server.seen.closed === 1);
  const late = await raw(t, server.port, { localPort, allowHalfOpen: true });
  late.socket.write(REQUEST);
  await until(() => late.ended);
  assert.equal(late.bytes.toString('latin1'), REPLY);
  late.socket.end();
  await until(() => late.closed);
  assert.equal(late.error, undefined);
  assert.deepEqual(server.seen.requests, [REQUEST], 'not a flow of its own');
});

test('what closed flows leave is bounded, and gives way to flows that are open', async (t) => {
  defaults.archiveBytes = 5 * REPLY.length;
  const server = await replyServer(t);
  const ports = [];
  for (let i = 0; i < 8; i++) ports.push(await stalledFirst(t, server));
  assert.equal(archiveSize(), 5 * REPLY.length);
  const answers = [];
  for (const localPort of ports) {
    const late = await raw(t, server.port + 1, { localPort, allowHalfOpen: true });
    late.socket.end(Buffer.concat([hello(late, server.port), end(REQUEST.length)]));
    await until(() => late.closed);
    answers.push(received(late).refusal === Refusal.none && received(late).text === REPLY);
  }
  assert.deepEqual(answers, [false, false, false, true, true, true, true, true], 'the oldest are gone');
});

test('a source port comes again while its last flow is remembered: the new flow may begin with its second connection', async (t) => {
  const WAIT = 150;
  Object.assign(defaults, { waitTimeout: WAIT });
  const sockets = [];
  const server = repnet.createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => {}).on('data', (chunk) => socket.write(chunk));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const { port } = server.address();
  const second = async (localPort, token, text) => {
    const replica = await raw(t, port + 1, { localPort });
    replica.socket.write(Buffer.concat([hello(replica, port, { token, patience: 50 }), data(0, text)]));
    await until(() => replica.bytes.length >= ANSWER_BYTES || replica.closed, 'an answer');
    return replica;
  };
  const reset = async (...connections) => {
    for (const { socket } of connections) socket.resetAndDestroy();
    await until(() => connections.every(({ closed }) => closed));
  };
  // A server that has just begun lets no flow begin so.
  for (let begun = false; !begun; ) {
    const replica = await second(ownPort(), Buffer.alloc(16, 9), 'x');
    begun = received(replica).refusal === Refusal.none;
    await reset(replica);
  }
  const localPort = ownPort();
  const [one, another] = [3, 4].map((byte) => Buffer.alloc(16, byte));
  const primary = await raw(t, port, { localPort });
  const count = sockets.length + (sockets.some(({ remotePort }) => remotePort === localPort) ? 0 : 1);
  await until(() => sockets.length === count);
  const replica = await second(localPort, one, 'first');
  assert.equal(received(replica).refusal, Refusal.none);
  await reset(primary, replica);
  const late = await second(localPort, one, 'first');
  assert.equal(received(late).refusal, Refusal.late, 'the same flow is not begun again');
  await reset(late);
  const again = await second(localPort, another, 'again');
  assert.equal(received(again).refusal, Refusal.none);
  await until(() => received(again).text === 'again');
  assert.equal(sockets.length, count + 1);
});
