/**
 * Whole conversations as applications have them: both sides write pieces of any size, pause, end when they like, in any
 * order; each sees the other's bytes once, in order, then one 'end' and one 'close'.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import repnet from 'repnet';
import { firstMismatch, payloadSlice } from '../../../repnet-bench/dist/payload.js';
import { ticks } from '../lib/support.mjs';

const THRESHOLD = 20_000;

/** What one side does: writes these pieces, waiting a turn of the event loop or a lull before each where it says so. */
const side = fc.record({
  pieces: fc.array(
    fc.record({
      bytes: fc.oneof(
        fc.integer({ min: 1, max: 300 }),
        fc.integer({ min: THRESHOLD - 50, max: THRESHOLD + 50 }),
        fc.integer({ min: 1, max: 150_000 }),
      ),
      before: fc.constantFrom('nothing', 'nothing', 'turn', 'lull', 'heard'),
    }),
    { maxLength: 6 },
  ),
  /** Reading stops this often for a turn. */
  pauses: fc.boolean(),
});

let server;
let port;
const accepted = new Map();

before(async () => {
  server = repnet.createServer(
    { allowHalfOpen: true, threshold: THRESHOLD, lull: 5, noDelay: true },
    (socket) => {
      socket.once('data', (first) => {
        // The first four bytes name the conversation; the rest is payload.
        socket.pause();
        accepted.get(first.readUInt32BE(0))(socket, first.subarray(4));
      });
      socket.on('error', () => {});
    },
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  ({ port } = server.address());
});
after(() => server.close());

const turn = () => new Promise((resolve) => setImmediate(resolve));
const lull = () => ticks(1, 8);

/** Play one side on a socket; resolves to what it saw. */
async function play(socket, { pieces, pauses }, sendKey, receiveKey, firstChunk) {
  const seen = { bytes: 0, wrong: -1, ends: 0, closes: 0, errors: [] };
  const receive = (chunk) => {
    const wrong = firstMismatch(receiveKey, seen.bytes, chunk);
    if (wrong >= 0 && seen.wrong < 0) seen.wrong = seen.bytes + wrong;
    seen.bytes += chunk.length;
    if (pauses) {
      socket.pause();
      setImmediate(() => socket.resume());
    }
  };
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket
    .on('end', () => seen.ends++)
    .on('close', () => seen.closes++)
    .on('error', (error) => seen.errors.push(error.code));
  if (firstChunk?.length > 0) receive(firstChunk);
  socket.on('data', receive).resume();
  let sent = 0;
  for (const { bytes, before: wait } of pieces) {
    if (wait === 'turn') await turn();
    if (wait === 'lull') await lull();
    if (wait === 'heard' && seen.ends === 0)
      await Promise.race([once(socket, 'data'), lull(), closed]).catch(() => {});
    for (const end = sent + bytes; sent < end; ) {
      const slice = payloadSlice(sendKey, sent, end);
      sent += slice.length;
      socket.write(slice);
    }
  }
  socket.end();
  await closed;
  return { ...seen, sent };
}

let conversations = 0;

async function converse(client, peer, replication) {
  const id = ++conversations;
  const [up, down] = [2 * id, 2 * id + 1];
  const answered = new Promise((resolve) => {
    accepted.set(id, (socket, rest) => {
      accepted.delete(id);
      resolve(play(socket, peer, down, up, rest));
    });
  });
  const socket = repnet.connect({
    port,
    host: '127.0.0.1',
    allowHalfOpen: true,
    threshold: THRESHOLD,
    lull: 5,
    ...replication,
  });
  const header = Buffer.alloc(4);
  header.writeUInt32BE(id);
  socket.write(header);
  const [here, there] = await Promise.all([play(socket, client, up, down), answered]);
  for (const [seen, other] of [
    [here, there],
    [there, here],
  ]) {
    assert.deepEqual(
      { ...seen, sent: 0 },
      { bytes: other.sent, wrong: -1, ends: 1, closes: 1, errors: [], sent: 0 },
    );
  }
}

for (const replication of [
  { replicate: 'flow' },
  { replicate: 'flow', copyDelay: 1 },
  { replicate: 'syn' },
  { replicate: false },
]) {
  test(`${JSON.stringify(replication)}: any conversation reaches both sides whole`, async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.tuple(side, side), { minLength: 1, maxLength: 4 }), async (pairs) => {
        // Some at a time, so that flows could be mixed up.
        await Promise.all(pairs.map(([client, peer]) => converse(client, peer, replication)));
      }),
      { numRuns: 60 },
    );
  });
}
