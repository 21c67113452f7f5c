/** A process that stands still for a while takes no copy for dead whose bytes it has not read yet. */
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import repnet from '../dist/index.js';
import { startRelay } from './lib/relay.mjs';
import { until } from './lib/support.mjs';

const PAIR_TIMEOUT = 700;
const REPLY = 2_000;
/** A hello, and the request in one record. */
const SAID = 76 + 10 + 1_000;

test('the first copy is cut, and the client stands still while the second brings the reply', async (t) => {
  const faults = [
    // Cut under the request; what the server says on the second copy after its answer (24 bytes) takes a while.
    { copy: 0, direction: 'up', kind: 'cut', at: 86 },
    { copy: 1, direction: 'down', kind: 'pause', at: 24, ms: 400 },
  ];
  let asked = 0;
  const relay = await startRelay({
    faultsFor: (_, copy) => faults.filter((fault) => fault.copy === copy),
    onBytes: (_, copy, direction, bytes) => {
      if (copy === 1 && direction === 'up') asked += bytes.length;
    },
  });
  let request = 0;
  const server = repnet.createServer({ addresses: [`${relay.host}:${relay.port}`] }, (socket) => {
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      request += chunk.length;
      if (request === 1_000) socket.end(Buffer.alloc(REPLY));
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  relay.targetPort = server.address().port;
  const client = fork(fileURLToPath(new URL('lib/stalled-client.mjs', import.meta.url)), [
    String(relay.port),
    String(PAIR_TIMEOUT),
  ]);
  t.after(() => {
    client.kill();
    relay.close();
    server.close();
  });
  const told = once(client, 'message');
  await until(() => request === 1_000, 'the request has come, by the second copy');
  await until(() => asked > SAID, 'the client has seen the end of the first copy, and asks about it');
  client.send('stand still');
  assert.deepEqual((await told)[0], { bytes: REPLY, ends: 1, errors: [] });
});
