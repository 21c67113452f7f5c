import assert from 'node:assert/strict';
import { test } from 'node:test';
import { WaitingList } from '../../dist/flow/waiting.js';
import { movedClock } from '../lib/moved-clock.mjs';

test('a list that has just begun knows that it does not know every flow, and does after a timeout', (t) => {
  const clock = movedClock();
  t.after(() => clock.stop());
  const list = new WaitingList({ timeout: 1000, entries: 8 }, () => {});
  clock.tick(1000);
  assert.equal(list.complete, false);
  clock.tick(250);
  assert.equal(list.complete, true);
});

test('a list that dropped a flow for want of room is incomplete until no twin of it can come', (t) => {
  const clock = movedClock();
  t.after(() => clock.stop());
  const list = new WaitingList({ timeout: 1000, entries: 2 }, () => {});
  for (const key of ['a', 'b', 'c']) list.add(key, 'primary', {});
  assert.equal(list.complete, false);
  clock.tick(5000);
  assert.equal(list.complete, false);
  clock.tick(250);
  assert.equal(list.complete, true);
});

test('a list with nothing to remember stops its timer', (t) => {
  const clock = movedClock();
  t.after(() => clock.stop());
  const list = new WaitingList({ timeout: 1000, entries: 2 }, () => {});
  list.add('a', 'primary', {});
  clock.tick(6000);
  assert.equal(list.size, 0);
  assert.equal(list.complete, true);
});
