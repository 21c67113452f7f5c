import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import repnet from 'repnet';
import { ticks } from '../lib/support.mjs';
import { listen, MODES } from './support/servers.mjs';

/** What a client that stops reading for longer than `pairTimeout` gets of an answer whose server has long closed. */
async function readSlowly(port, replicate, bytes, half) {
  const socket = repnet.connect({ port, host: '127.0.0.1', replicate, peer: 'repnet' });
  const seen = { bytes: 0, events: [] };
  for (const event of ['end', 'error', 'close'])
    socket.on(event, (error) => seen.events.push(error?.code ?? event));
  socket.on('data', (chunk) => (seen.bytes += chunk.length));
  socket.once('data', () => {
    socket.pause();
    ticks(20, 25).then(() => socket.resume());
  });
  if (half) socket.end(String(bytes));
  else socket.write(String(bytes));
  await once(socket, 'close').catch(() => once(socket, 'close'));
  return seen;
}

for (const replicate of MODES) {
  for (const half of [false, true]) {
    test(`replicate ${replicate}${half ? ', half-closed' : ''}: a slow reader gets all of what a closed server has sent`, async (t) => {
      const server = repnet.createServer({ allowHalfOpen: half, pairTimeout: 100 }, (socket) => {
        socket.once('data', (request) => socket.end(Buffer.alloc(Number(request)))).resume();
        socket.on('error', (error) => assert.fail(error));
      });
      const port = await listen(t, server);
      await Promise.all(
        [50_000, 90_000, 120_000, 300_000, 600_000, 1_500_000].map(async (bytes) => {
          assert.deepEqual(await readSlowly(port, replicate, bytes, half), {
            bytes,
            events: ['end', 'close'],
          });
        }),
      );
    });
  }
}
