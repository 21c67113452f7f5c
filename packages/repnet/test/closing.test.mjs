/** An application that writes and closes at once, without waiting for the peer: what it wrote arrives, as with net. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import repnet from '../dist/index.js';
import { startRelay } from './lib/relay.mjs';

const WAYS = {
  'write, destroySoon': (socket, bytes) => {
    socket.write(bytes);
    socket.destroySoon();
  },
  'end, destroyed when finished': (socket, bytes) => socket.end(bytes, () => socket.destroy()),
  'write, destroyed when written': (socket, bytes) => socket.write(bytes, () => socket.destroy()),
  // By then one connection may be established alone, and carry all that is above the threshold.
  'once connected: write, destroySoon': (socket, bytes) =>
    socket.once('connect', () => WAYS['write, destroySoon'](socket, bytes)),
};

/** Of a client that has been paired before, a server knows what to expect: each flow here is the first from its address. */
let clients = 0;

/** What the application of a server sees of one flow, by a relay that does `faults` if there are any. */
async function observe(t, length, way, faults) {
  const seen = { bytes: 0, ends: 0, errors: [] };
  const relay = await startRelay({
    faultsFor: (_, copy) => (faults ?? []).filter((fault) => fault.copy === copy),
  });
  t.after(() => relay.close());
  const closed = new Promise((resolve) => {
    const server = repnet.createServer({ addresses: [`${relay.host}:${relay.port}`] }, (socket) => {
      socket.on('data', (chunk) => (seen.bytes += chunk.length));
      socket.on('end', () => seen.ends++);
      socket.on('error', (error) => seen.errors.push(error.code));
      socket.on('close', resolve);
    });
    t.after(() => server.close());
    server.listen(0, '127.0.0.1', () => {
      relay.targetPort = server.address().port;
      const { host, port } = faults === undefined ? { host: '127.0.0.1', port: relay.targetPort } : relay;
      const localAddress = `127.0.1.${++clients}`;
      way(
        repnet.connect({ host, port, localAddress, replicate: 'flow', peer: 'repnet' }),
        Buffer.alloc(length),
      );
    });
  });
  await closed;
  return seen;
}

for (const [name, way] of Object.entries(WAYS))
  for (const length of [1_000, 60_000, 300_000])
    for (const [path, faults] of [
      ['directly', undefined],
      ['through a relay', []],
      ['the second copy arrives later', [{ copy: 1, direction: 'up', kind: 'pause', at: 0, ms: 100 }]],
    ])
      test(`${name}, ${length} bytes, ${path}`, async (t) => {
        assert.deepEqual(await observe(t, length, way, faults), { bytes: length, ends: 1, errors: [] });
      });
