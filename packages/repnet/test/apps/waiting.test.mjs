import assert from 'node:assert/strict';
import { test } from 'node:test';
import { WaitingList } from '../../dist/memory/waiting.js';
import { movedClock } from '../lib/moved-clock.mjs';

test('a list that has just begun knows that it does not know every flow, and does after a timeout', (t) => {
  const clock = movedClock();
  t.after(() => clock.stop());
  const list = new WaitingList({ timeout: 1000, entries: 8 }, () => {});
  clock.tick(1000);
  assert.equal(list.covers(1000), false);
  clock.tick(250);
  assert.equal(list.covers(1000), true);
});

test('a list that dropped a flow for want of room is incomplete until no twin of it can come', (t) => {
  const clock = movedClock();
  t.after(() => clock.stop());
  const list = new WaitingList({ timeout: 1000, entries: 2 }, () => {});
  for (const key of ['a', 'b', 'c']) list.add(key, 'primary', {});
  assert.equal(list.covers(1000), false);
  clock.tick(5000);
  assert.equal(list.covers(1000), false);
  clock.tick(250);
  assert.equal(list.covers(1000), true);
});

test('a list with nothing to remember stops its timer', (t) => {
  const clock = movedClock();
  t.after(() => clock.stop());
  const list = new WaitingList({ timeout: 1000, entries: 2 }, () => {});
  list.add('a', 'primary', {});
  clock.tick(6000);
  assert.equal(list.size, 0);
  assert.equal(list.covers(1000), true);
});

test('a flow waits for its second connection for the whole of the timeout, whenever in a tick it began', (t) => {
  const clock = movedClock();
  t.after(() => clock.stop());
  const expired = [];
  const list = new WaitingList({ timeout: 1000, entries: 8 }, ({ key }) => expired.push(key));
  clock.tick(200);
  list.add('a', 'primary', {});
  clock.tick(999);
  assert.deepEqual(expired, []);
  clock.tick(251);
  assert.deepEqual(expired, ['a']);
});

const [ONE, ANOTHER] = [1, 2].map((byte) => Buffer.alloc(16, byte));

test('the first connection of a flow that began with its second is awaited for T and a timeout, whatever became of the flow', (t) => {
  for (const state of ['waiting', 'over']) {
    const clock = movedClock();
    t.after(() => clock.stop());
    const list = new WaitingList({ timeout: 1000, entries: 8 }, () => {});
    const entry = list.add('a', 'replica', {}, { token: ONE, patience: 500 });
    if (state === 'over') list.settle(entry, 'over');
    clock.tick(1500);
    assert.notEqual(list.awaited('a'), undefined, state);
    clock.tick(500);
    assert.equal(list.awaited('a'), undefined, 'somebody else may come from there');
    assert.equal(list.size, 0);
    clock.stop();
  }
});

test('a flow that is known by its token is not taken for a later one from the same port', (t) => {
  const clock = movedClock();
  t.after(() => clock.stop());
  const list = new WaitingList({ timeout: 1000, entries: 8 }, () => {});
  list.settle(list.add('paired', 'primary', {}), 'paired', { token: ONE, patience: 500 });
  list.settle(list.add('never', 'primary', {}), 'over');
  list.add('waiting', 'primary', {});
  const isOther = (key, token) => list.isOther(list.get(key), { token, patience: 500 });
  assert.equal(isOther('paired', ONE), false);
  assert.equal(isOther('paired', ANOTHER), true);
  assert.equal(isOther('never', ANOTHER), false, 'its own second connection may be late');
  assert.equal(isOther('waiting', ANOTHER), false);
});

test('flows whose first connection is awaited count as entries, and give way to those that wait', (t) => {
  const clock = movedClock();
  t.after(() => clock.stop());
  const list = new WaitingList({ timeout: 1000, entries: 4 }, () => {});
  for (let n = 0; n < 8; n++)
    list.settle(list.add(`over ${n}`, 'replica', {}, { token: ONE, patience: 500 }), 'over');
  for (let n = 0; n < 3; n++) list.add(`waiting ${n}`, 'primary', {});
  assert.equal(list.size, 4);
  assert.equal(list.get('waiting 0').state, 'waiting');
  assert.equal(list.covers(500), false, 'what was dropped may still have a twin');
});
