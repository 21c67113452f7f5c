/** The sender at the threshold of doubling: what it waits for, how long, and how much it doubles meanwhile. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Flow } from '../dist/flow/flow.js';
import repnet from '../dist/index.js';
import { movedClock } from './lib/moved-clock.mjs';
import { echo, echoServer, until } from './lib/support.mjs';

/** Longer than the wait for a verdict. */
const WAIT = 30;

/** A flow with two open connections that take everything, and what each has taken of the application's bytes. */
function doubled(t, threshold) {
  const clock = movedClock();
  t.after(() => clock.stop());
  const outer = { deliver: () => true, destroy() {}, touch() {} };
  const flow = new Flow(outer, { threshold, lull: 50 }, { framed: [false, true] });
  const taken = [0, 0];
  const leg = (copy) => {
    const take = (parts, done) => {
      for (const part of parts) taken[copy] += part.length;
      done?.();
    };
    return { copy, backlog: 0, resumeReading() {}, send: take, post: take };
  };
  flow.open(leg(0));
  flow.open(leg(1));
  return { flow, taken, clock };
}

test('no verdict comes: the message goes on by doublings, each after a wait of its own', (t) => {
  const { flow, taken, clock } = doubled(t, 1_000);
  flow.write(Buffer.alloc(100_000), () => {});
  const seen = [taken[0]];
  for (let n = 0; n < 4; n++) {
    clock.tick(WAIT);
    seen.push(taken[0]);
  }
  assert.deepEqual(seen, [1_000, 2_000, 4_000, 8_000, 16_000]);
});

test('one write of many thresholds without a verdict is sent, whatever its length', (t) => {
  const { flow, taken, clock } = doubled(t, 10);
  let sent = false;
  flow.write(Buffer.alloc(10_000_000), () => {
    sent = true;
  });
  for (let n = 0; n < 30 && !sent; n++) clock.tick(WAIT);
  assert.equal(sent, true);
  assert.equal(taken[0], 10_000_000);
});

test('a verdict ends the wait: one connection carries the rest', (t) => {
  const { flow, taken } = doubled(t, 1_000);
  flow.write(Buffer.alloc(100_000), () => {});
  flow.sender.report(1_000, 1_000);
  assert.equal(taken[0], 100_000);
  assert.ok(taken[1] < 1_200, `${taken[1]} bytes on the second`);
});

test('threshold 0: both connections are made and nothing is doubled', { timeout: 10_000 }, async (t) => {
  const { port } = await echoServer(t, { threshold: 0 });
  repnet.resetStats();
  const socket = repnet.connect({ host: '127.0.0.1', port, replicate: 'flow', peer: 'repnet', threshold: 0 });
  t.after(() => socket.destroy());
  await until(() => repnet.stats().flowsPaired === 1);
  for (const message of ['first', 'x'.repeat(1_000)]) assert.equal(await echo(socket, message), message);
  assert.equal(repnet.stats().bytesDoubled, 0);
});
