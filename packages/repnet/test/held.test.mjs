/** A replica that has to wait for its first connection (the server has just begun): nothing that it brings is lost or moved. */
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import repnet from '../dist/index.js';
import { ANSWER_BYTES, controlRecord, dataHeader, decodeAnswer, Record, Refusal } from '../dist/wire.js';
import { data, defaults, hello, ownPort, raw, settle, until } from './lib/support.mjs';

beforeEach(() => {
  Object.assign(defaults, { waitTimeout: 2_000, pairTimeout: 300 });
  repnet.resetStats();
});

/** A server that has just begun, so that no replica can start a flow on it; what its application is given. */
async function youngServer(t, options = {}) {
  const seen = { connections: 0, text: '', ended: false, errors: [] };
  const server = repnet.createServer(options, (socket) => {
    seen.connections++;
    socket.on('data', (chunk) => {
      seen.text += chunk;
    });
    socket.on('end', () => {
      seen.ended = true;
    });
    socket.on('error', (error) => seen.errors.push(error));
    t.after(() => socket.destroy());
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  return { seen, port: server.address().port };
}

test('records that come after the hello, while the replica waits, are read when its first connection has come', async (t) => {
  const { seen, port } = await youngServer(t);
  const localPort = ownPort();
  const replica = await raw(t, port + 1, { localPort, noDelay: true });
  replica.socket.write(hello(replica, port));
  await settle();
  for (const record of [data(0, 'one '), data(4, 'two '), data(8, 'three'), controlRecord(Record.end, 13)]) {
    replica.socket.write(record);
    await settle();
  }
  assert.equal(seen.connections, 0);
  // The first connection brings nothing: all that the application gets is what the replica brought.
  await raw(t, port, { localPort });
  await until(() => seen.ended, 'the end of the stream');
  assert.deepEqual(seen, { connections: 1, text: 'one two three', ended: true, errors: [] });
});

test('what a waiting replica brings stays in the kernel: the server keeps none of it', async (t) => {
  const { port } = await youngServer(t);
  const replica = await raw(t, port + 1, { localPort: ownPort() });
  replica.socket.write(hello(replica, port));
  await settle();
  const megabyte = Buffer.alloc(1024 * 1024);
  for (let n = 0; n < 64; n++)
    replica.socket.write(Buffer.concat([dataHeader(n * megabyte.length, megabyte.length), megabyte]));
  await settle();
  assert.ok(replica.socket.writableLength > 32 * megabyte.length, 'the sender is slowed');
});

/** What the server answers a replica whose client sends hellos of a flow for so long. */
async function refusalOf(t, port, patience) {
  const replica = await raw(t, port + 1);
  replica.socket.write(hello(replica, port, { patience }));
  await until(() => replica.bytes.length >= ANSWER_BYTES, 'the answer');
  return decodeAnswer(replica.bytes).refusal;
}

test('a replica whose client is more patient than the memory of the server is long begins no flow, but joins one', async (t) => {
  defaults.waitTimeout = 50;
  const { seen, port } = await youngServer(t);
  while ((await refusalOf(t, port, 100)) !== Refusal.none);
  assert.equal(seen.connections, 1, 'a young server has become old enough');
  assert.equal(await refusalOf(t, port, 4 * defaults.waitTimeout + 1), Refusal.unknown);
  assert.equal(seen.connections, 1);
  const localPort = ownPort();
  const first = await raw(t, port, { localPort });
  first.socket.write('x');
  await until(() => seen.connections === 2);
  const replica = await raw(t, port + 1, { localPort });
  replica.socket.write(hello(replica, port, { patience: 60_000 }));
  await until(() => repnet.stats().flowsPaired === 1);
});

test('a second connection later than the server remembers the first is refused: one request, one connection', async (t) => {
  defaults.waitTimeout = 20;
  const { seen, port } = await youngServer(t);
  while ((await refusalOf(t, port, 10)) !== Refusal.none);
  const { refused } = repnet.stats();
  const options = { host: '127.0.0.1', port, replicate: 'flow', peer: 'repnet', copyDelay: 400 };
  const socket = repnet.connect(options).on('error', () => {});
  t.after(() => socket.destroy());
  socket.write('once');
  await until(() => repnet.stats().refused > refused, 'the second connection is turned away');
  assert.deepEqual([seen.connections, seen.text, socket.destroyed], [2, 'once', false]);
});
