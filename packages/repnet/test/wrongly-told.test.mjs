/** RepSYN, told that a server is of this library, which it is not: plain, and all is as with net. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import { beforeEach, test } from 'node:test';
import { forgetPeers } from '../dist/client/peers.js';
import repnet from '../dist/index.js';

const EVENTS = [
  'lookup',
  'connectionAttempt',
  'connectionAttemptFailed',
  'connect',
  'ready',
  'finish',
  'end',
  'close',
  'error',
];

beforeEach(forgetPeers);

/** What a client sees that ends what it writes before it is connected, and what the server gets. */
async function observe(t, connect, host, size) {
  let bytes = 0;
  const server = net.createServer((socket) => {
    socket.on('error', () => {}).on('data', (chunk) => (bytes += chunk.length));
  });
  server.listen(0, '127.0.0.1');
  t.after(() => server.close());
  await once(server, 'listening');
  const { port } = server.address();
  const socket = connect({ port, host, family: 4 });
  t.after(() => socket.destroy());
  const log = [];
  for (const event of EVENTS)
    socket.on(event, (...args) => log.push(event, ...args.map((arg) => (arg === port ? 'port' : arg))));
  socket.write(Buffer.alloc(size), () => log.push('written'));
  socket.resume().end('end');
  await once(socket, 'close');
  return { log, bytes };
}

test('a resolver of its own is asked once', async (t) => {
  let asked = 0;
  const lookup = (_host, { all }, done) => {
    asked++;
    process.nextTick(done, null, all ? [{ address: '127.0.0.1', family: 4 }] : '127.0.0.1', 4);
  };
  const told = (options) => repnet.connect({ ...options, lookup, replicate: 'syn', peer: 'repnet' });
  assert.equal((await observe(t, told, 'a.name', 10)).bytes, 13);
  assert.equal(asked, 1);
});

for (const host of ['127.0.0.1', 'localhost'])
  for (const size of [10, 300_000])
    test(`${host}, ${size} bytes and an end before it is connected`, async (t) => {
      const told = (options) => repnet.connect({ ...options, replicate: 'syn', peer: 'repnet' });
      assert.deepEqual(await observe(t, told, host, size), await observe(t, net.connect, host, size));
    });
