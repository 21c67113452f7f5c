/** A second connection that the server has not answered does not outlive a flow for longer than the server remembers that. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import { test } from 'node:test';
import { endLinger, startLinger } from '../dist/flow/waits.js';
import repnet from '../dist/index.js';
import { movedClock } from './lib/moved-clock.mjs';
import { startRelay } from './lib/relay.mjs';
import { OWN_ADDRESS, ownPort, settle, until } from './lib/support.mjs';

const PAIR_TIMEOUT = 300;
const REPLY = 150_000;
/** As many closed flows as are waited for (flow/waits.ts). */
const LINGER_MOST = 4_096;

/** As many closed flows wait already as may; the next one waits for its `pairTimeout` alone. */
function crowd(t) {
  const lingers = Array.from({ length: LINGER_MOST }, () => startLinger(() => {}));
  t.after(() => lingers.forEach(endLinger));
}

for (const crowded of [false, true])
  test(`${crowded ? 'many closed flows wait, ' : ''}the second connection is silent, and is reset when its flow is over and its patience at an end`, async (t) => {
    if (crowded) crowd(t);
    let second;
    let failure;
    const begun = (client) => (second = client.on('error', (error) => (failure = error)));
    const fault = { copy: 1, direction: 'up', kind: 'nosyn', at: 0, fallen: begun };
    const relay = await startRelay({ faultsFor: (_, copy) => (copy === 1 ? [fault] : []) });
    const server = repnet.createServer(
      { allowHalfOpen: true, addresses: [`${relay.host}:${relay.port}`] },
      (socket) => socket.once('data', () => socket.end(Buffer.alloc(REPLY))),
    );
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    relay.targetPort = server.address().port;
    t.after(() => {
      relay.close();
      server.close();
    });
    const { host, port } = relay;
    const clock = movedClock();
    t.after(() => clock.stop());
    const client = repnet.connect({
      host,
      port,
      localAddress: OWN_ADDRESS,
      localPort: ownPort(),
      peer: 'repnet',
      replicate: 'flow',
      pairTimeout: PAIR_TIMEOUT,
    });
    let reply = 0;
    client.on('data', (chunk) => (reply += chunk.length));
    client.end(Buffer.alloc(100));
    await until(() => reply === REPLY, 'the reply');
    await until(() => {
      // The end waits for the second connection's word.
      clock.tick(PAIR_TIMEOUT);
      return client.closed;
    }, 'the flow is over');
    clock.tick(PAIR_TIMEOUT);
    await until(() => second?.closed || second?.readableEnded, 'the second connection is closed');
    assert.equal(failure?.code, 'ECONNRESET', 'reset: the kernel goes on sending what it closes orderly');
  });

test('a server that has not spoken at all may still do so: of a flow that has only sent the first connection is not reset', async (t) => {
  const connections = [];
  const begun = (copy) => (client) => (connections[copy] = client.on('error', () => {}));
  const relay = await startRelay({
    faultsFor: (_, copy) => [{ copy, direction: 'up', kind: 'nosyn', at: 0, fallen: begun(copy) }],
  });
  t.after(() => relay.close());
  const client = repnet.connect({
    host: relay.host,
    port: relay.port,
    localAddress: OWN_ADDRESS,
    localPort: ownPort(),
    peer: 'repnet',
    replicate: 'flow',
    pairTimeout: PAIR_TIMEOUT,
  });
  await once(client, 'connect');
  await until(() => connections[0] && connections[1], 'both are there');
  const clock = movedClock();
  t.after(() => clock.stop());
  // The second has said a hello and no more.
  const [first] = connections;
  const ended = once(first, 'end');
  client.end('request', () => client.destroy());
  await ended;
  clock.tick(3 * PAIR_TIMEOUT);
  await settle();
  // Who is not read any more learns of a reset by what it writes.
  const error = await new Promise((told) => first.write('.', told));
  assert.equal(error ?? null, null);
});

test('a first connection that is refused, beside a second that is not answered, is refused as by net', async (t) => {
  const relay = await startRelay({
    faultsFor: (_, copy) => [{ copy, direction: 'up', kind: 'nosyn', at: 0 }],
  });
  t.after(() => relay.close());
  const { host, port: replicaPort } = relay;
  const closed = net.createServer().listen(0, host);
  await once(closed, 'listening');
  const { port } = closed.address();
  await new Promise((resolve) => closed.close(resolve));
  const options = { host, port, replicaPort, peer: 'repnet', replicate: 'flow', pairTimeout: 50 };
  const socket = repnet.connect(options);
  const [error] = await once(socket, 'error');
  assert.equal(error.code, 'ECONNREFUSED');
});
