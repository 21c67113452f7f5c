/** A second connection that the server has not answered does not outlive a flow for longer than the server remembers that. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import repnet from '../dist/index.js';
import { startRelay } from './lib/relay.mjs';
import { OWN_ADDRESS, ownPort, until } from './lib/support.mjs';

const PAIR_TIMEOUT = 300;
/** Much less than a closed flow is waited for that still has something to give (60 s). */
const REMEMBERED_MS = 30_000;

for (const pairing of ['token', 'address'])
  test(`pairing by ${pairing}: the second connection is silent, and is reset when its flow is over and its patience at an end`, async (t) => {
    let second;
    const fault = { copy: 1, direction: 'up', kind: 'nosyn', at: 0, fallen: (client) => (second = client) };
    const relay = await startRelay({ faultsFor: (_, copy) => (copy === 1 ? [fault] : []) });
    const server = repnet.createServer(
      { pairing, allowHalfOpen: true, addresses: [`${relay.host}:${relay.port}`] },
      (socket) => {
        socket.resume();
        socket.on('end', () => socket.end(Buffer.alloc(150_000)));
      },
    );
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    relay.targetPort = server.address().port;
    t.after(() => {
      relay.close();
      server.close();
    });
    const { host, port } = relay;
    const client = repnet.connect({
      host,
      port,
      localAddress: OWN_ADDRESS,
      localPort: ownPort(),
      pairing,
      peer: 'repnet',
      replicate: 'flow',
      pairTimeout: PAIR_TIMEOUT,
    });
    let reply = 0;
    client.on('data', (chunk) => (reply += chunk.length));
    client.end(Buffer.alloc(100));
    await once(client, 'close');
    assert.equal(reply, 150_000);
    await until(() => second !== undefined, 'the second connection was there');
    if (second.closed) return;
    const late = setTimeout(() => second.destroy(new Error('it outlives the flow')), REMEMBERED_MS);
    const [error] = await once(second, 'close').catch((failed) => [failed]);
    clearTimeout(late);
    assert.notEqual(error?.message, 'it outlives the flow');
  });
