/**
 * Bytes sent while only one of the two connections is there, or takes anything: on the second alone is nothing that the first is not
 * sent when it comes. On connections made of memory.
 */
import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { PRIMARY, REPLICA } from '../dist/flow/machine.js';
import { archiveSize } from '../dist/memory/archive.js';
import { resetBudget } from '../dist/memory/budget.js';
import { memoryLeg, newFlow } from './lib/memory-leg.mjs';
import { movedClock } from './lib/moved-clock.mjs';
import { defaults } from './lib/support.mjs';

const THRESHOLD = 1_000;
const { archiveBytes, budget } = defaults;
afterEach(() => Object.assign(defaults, { archiveBytes, budget }));

/** Writes, and notes how often the callback comes, and with what. */
function write(flow, bytes) {
  const called = [];
  flow.write(bytes, (error) => called.push(error ?? null));
  return called;
}

const text = (length) => Buffer.from(Array.from({ length }, (_, i) => 97 + (i % 26)));

/** A flow of which only the second connection has come. */
function secondAlone() {
  const flow = newFlow(THRESHOLD);
  const second = memoryLeg(REPLICA);
  flow.open(second);
  return { flow, second };
}

test('a write succeeds when either connection has taken it', () => {
  const flow = newFlow(THRESHOLD);
  flow.open(memoryLeg(PRIMARY, { slow: true }));
  flow.open(memoryLeg(REPLICA));
  assert.deepEqual(write(flow, text(10)), [null]);
});

test('… and fails when both have failed', () => {
  const flow = newFlow(THRESHOLD);
  const legs = [PRIMARY, REPLICA].map((copy) => memoryLeg(copy, { slow: true }));
  for (const leg of legs) flow.open(leg);
  const called = write(flow, text(10));
  flow.abandon(REPLICA);
  assert.deepEqual(called, []);
  const reset = new Error('reset');
  for (const leg of legs) leg.settle(reset);
  assert.deepEqual(called, [reset]);
});

test('while the first is still to come, the second carries no more than the threshold; the first is sent all of it', () => {
  const { flow, second } = secondAlone();
  const message = text(3 * THRESHOLD);
  const called = write(flow, message);
  assert.equal(second.payload().length, THRESHOLD);
  assert.deepEqual(called, []);
  const first = memoryLeg(PRIMARY);
  flow.open(first);
  flow.sender.report(THRESHOLD, THRESHOLD);
  assert.deepEqual(called, [null]);
  assert.equal(first.bytes().compare(message), 0);
});

for (const [what, happens] of [
  ['the client has given the first up', (flow) => flow.abandon(PRIMARY)],
  ['the peer says that it has', (flow) => flow.sender.firstGivenUp()],
])
  test(`… or the second, when ${what}`, () => {
    const { flow, second } = secondAlone();
    const called = write(flow, text(3 * THRESHOLD));
    happens(flow);
    assert.deepEqual(called, [null]);
    assert.equal(second.payload().length, 3 * THRESHOLD);
    assert.equal(archiveSize(), 0);
  });

test('… and so it does when there is no room to keep it', () => {
  Object.assign(defaults, { archiveBytes: 5 });
  const { flow, second } = secondAlone();
  const called = write(flow, text(10));
  assert.deepEqual([second.payload(), called], ['', []]);
  const first = memoryLeg(PRIMARY);
  flow.open(first);
  assert.equal(first.bytes().toString(), 'abcdefghij');
  assert.deepEqual(called, [null]);
});

test('the first is sent what the second carried before it, whatever the budget', () => {
  const { flow } = secondAlone();
  write(flow, text(10));
  Object.assign(defaults, { budget: { bytes: 0, connections: 0 } });
  resetBudget();
  const first = memoryLeg(PRIMARY);
  flow.open(first);
  write(flow, Buffer.from('!'));
  assert.equal(first.bytes().toString(), 'abcdefghij!');
});

/** Kept-alive messages on a first connection that takes nothing, and a second that takes everything, until one has to wait. */
function stuckFirst() {
  const flow = newFlow(100_000);
  flow.options.pairTimeout = 1_000;
  const first = memoryLeg(PRIMARY, { slow: true });
  const second = memoryLeg(REPLICA);
  flow.open(first);
  flow.open(second);
  const message = Buffer.alloc(50_000);
  let written = 0;
  let called;
  do {
    flow.sender.tx.newMessage();
    called = write(flow, message);
    written += message.length;
  } while (called.length > 0 && written < 10 << 20);
  return { flow, first, second, called, message };
}

test('a first connection that takes nothing while the second moves is kept no more than 1 MiB: the application waits for it', (t) => {
  const clock = movedClock();
  t.after(() => clock.stop());
  const { flow, first, called, message } = stuckFirst();
  assert.deepEqual([called, flow.tx.copies[PRIMARY]], [[], 'open']);
  assert.ok(first.backlog <= 1024 * 1024 + message.length, `${first.backlog} bytes wait`);
  first.settle();
  assert.deepEqual([called, flow.tx.copies[PRIMARY]], [[null], 'open'], 'it has taken them');
});

test('… and is given up for the second when it has taken nothing for pairTimeout', (t) => {
  const clock = movedClock();
  t.after(() => clock.stop());
  const { flow, first, called } = stuckFirst();
  first.unsent = 500_000;
  clock.tick(999);
  assert.deepEqual(called, []);
  clock.tick(1);
  assert.deepEqual([called, flow.tx.copies[PRIMARY]], [[null], 'gone']);
});

test('… but not while it moves', (t) => {
  const clock = movedClock();
  t.after(() => clock.stop());
  const { flow, first, called } = stuckFirst();
  for (let unsent = -1; unsent > -5; unsent--) {
    first.unsent = unsent;
    clock.tick(1_000);
  }
  assert.deepEqual([called, flow.tx.copies[PRIMARY]], [[], 'open']);
});

test('what was under way on the first when the second was sent it again is no loss when the first fails', () => {
  const flow = newFlow(THRESHOLD);
  const [first, second] = [memoryLeg(PRIMARY, { slow: true }), memoryLeg(REPLICA, { slow: true })];
  first.destroy = (error) => flow.legLost(first, error);
  flow.open(first);
  const called = write(flow, text(10));
  flow.open(second);
  first.settle(new Error('reset'));
  assert.deepEqual(called, []);
  second.settle();
  assert.deepEqual([called, second.payload()], [[null], 'abcdefghij']);
});
