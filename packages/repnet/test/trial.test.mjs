/** `stats().trial`: flows with copies beside a control group without, and what may be said of the difference. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { afterEach, beforeEach, test } from 'node:test';
import { forgetPeers } from '../dist/client/peers.js';
import repnet from '../dist/index.js';
import { Arm, compare } from '../dist/trial.js';
import { randomFrom } from './lib/random.mjs';
import { defaults, echo, echoServer } from './lib/support.mjs';

beforeEach(() => {
  forgetPeers();
  repnet.resetStats();
});
afterEach(() => {
  defaults.control = 0;
});

/** A group of flows that took these times. */
function arm(times) {
  const made = new Arm();
  for (const ms of times) made.add(ms);
  return made;
}

/** Exponential times with this mean. */
function exponential(random, mean, count) {
  return Array.from({ length: count }, () => -mean * Math.log(1 - random()));
}

test('flows that are slower with copies are a loss, whoever brought bytes first', () => {
  const random = randomFrom(1);
  const slow = exponential(random, 0.91, 1_701);
  const { change } = compare(arm(slow), arm(exponential(random, 0.55, 1_701)));
  for (const { low, high, change: at } of [change.mean, change.p50])
    assert.ok(low > 0 && low <= at && at <= high, JSON.stringify(change));
});

test('flows that are faster with copies are a gain', () => {
  const random = randomFrom(2);
  const { change } = compare(arm(exponential(random, 5, 2_000)), arm(exponential(random, 10, 2_000)));
  for (const each of Object.values(change)) assert.ok(each.high < 0, JSON.stringify(change));
});

test('an interval contains the true change, 95 times of 100 at least but for chance', () => {
  const random = randomFrom(3);
  const [a, b] = [4, 6];
  const inside = { mean: 0, p50: 0, p95: 0 };
  const TRIALS = 400;
  for (let i = 0; i < TRIALS; i++) {
    const { change } = compare(arm(exponential(random, a, 500)), arm(exponential(random, b, 300)));
    const truth = { mean: a - b, p50: (a - b) * Math.log(2), p95: (a - b) * Math.log(20) };
    for (const [name, value] of Object.entries(truth))
      if (change[name].low <= value && value <= change[name].high) inside[name]++;
  }
  for (const [name, count] of Object.entries(inside))
    assert.ok(count >= 0.92 * TRIALS, `${name}: ${count} of ${TRIALS}`);
});

test('too few flows say nothing', () => {
  const { change, withCopies } = compare(arm([1]), arm([2]));
  assert.deepEqual(Object.values(change), [undefined, undefined, undefined, undefined]);
  assert.equal(withCopies.flows, 1);
  assert.equal(compare(arm(Array(100).fill(1)), arm(Array(100).fill(2))).change.p99, undefined);
});

test('a histogram has every flow, in buckets that are within 1 % of its times', () => {
  const { histogram, flows, milliseconds, p50 } = arm([0, 0.001, 3, 3, 500]).times;
  assert.equal(
    histogram.reduce((sum, [, count]) => sum + count, 0),
    5,
  );
  assert.equal(flows, 5);
  assert.ok(Math.abs(milliseconds - 506.001) < 1e-6);
  assert.ok(Math.abs(p50 - 3) <= 0.03);
  const bounds = histogram.map(([upTo]) => upTo);
  assert.deepEqual(
    bounds,
    bounds.toSorted((a, b) => a - b),
  );
});

for (const replicate of ['flow', 'syn'])
  for (const control of [1, 0])
    test(`${replicate}, control ${control}: flows are timed in one group`, async (t) => {
      const { port } = await echoServer(t);
      const dial = () => repnet.connect({ host: '127.0.0.1', port, replicate, peer: 'repnet' });
      defaults.control = control === 1 ? 1 : Number.MIN_VALUE;
      const FLOWS = 5;
      for (let i = 0; i < FLOWS; i++) {
        const socket = dial();
        assert.equal(await echo(socket, 'x'), 'x');
        assert.equal(await echo(socket, 'y'), 'y', 'the second answer is not timed');
        socket.destroy();
        await once(socket, 'close');
      }
      const silent = dial();
      await once(silent, 'connect');
      silent.destroy();
      await once(silent, 'close');
      const { trial, flowsPlain } = repnet.stats();
      const [chosen, other] = control === 1 ? ['without', 'withCopies'] : ['withCopies', 'without'];
      assert.deepEqual([trial[chosen].flows, trial[chosen].unanswered], [FLOWS, 1]);
      assert.deepEqual([trial[other].flows, trial[other].unanswered], [0, 0]);
      assert.ok(trial[chosen].milliseconds > 0);
      assert.equal(flowsPlain, control === 1 ? FLOWS + 1 : 0);
      repnet.resetStats();
      assert.equal(repnet.stats().trial[chosen].flows, 0);
    });

test('flows that could have no copies are in no group', async (t) => {
  const { port } = await echoServer(t);
  defaults.control = 0.5;
  for (const options of [{ replicate: false }, { replicate: 'flow', peer: 'plain' }, { replicate: 'syn' }]) {
    const socket = repnet.connect({ host: '127.0.0.1', port, ...options });
    assert.equal(await echo(socket, 'x'), 'x');
    socket.destroy();
    await once(socket, 'close');
    forgetPeers();
  }
  const { withCopies, without } = repnet.stats().trial;
  assert.deepEqual([withCopies.flows, without.flows], [0, 0]);
});
