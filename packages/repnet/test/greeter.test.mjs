/** The connections whose hello is awaited: which of them is turned away, and when, against a plain list. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { REPLICA } from '../dist/flow/machine.js';
import { Greeter } from '../dist/server/greeter.js';
import { encodeHello, Kind } from '../dist/wire.js';
import { movedClock } from './lib/moved-clock.mjs';

const MOST = 8;

/** A connection that is not one of the system's. */
const handle = () => ({
  bytesRead: 0,
  reading: false,
  readStart: () => 0,
  readStop: () => 0,
  ref() {},
  unref() {},
  close() {},
  reset: () => 0,
  setNoDelay: () => 0,
});

const HELLO = encodeHello({
  kind: Kind.probe,
  flags: 0,
  threshold: 0,
  token: Buffer.alloc(16),
  sourceAddress: '127.0.0.1',
  sourcePort: 1,
  targetAddress: '127.0.0.1',
  targetPort: 2,
  patience: 0,
});

test('connections that speak, fail, say something else or are too many leave the list in any order', () => {
  const told = [];
  const greeter = new Greeter(
    { copy: REPLICA, most: MOST, timeout: 1e6 },
    (leg) => told.push(['greeted', leg]),
    (leg) => told.push(['refused', leg]),
  );
  const list = [];
  const expected = [];
  let drawn = 1;
  const draw = (n) => {
    drawn = (drawn * 48271) % 2147483647;
    return drawn % n;
  };
  let longest = 0;
  for (let step = 0; step < 3_000; step++) {
    const action = draw(7);
    if (action < 3 || list.length === 0) {
      if (list.length === MOST) expected.push(['refused', list.shift()]);
      list.push(greeter.accept(handle()));
    } else {
      const [leg] = list.splice(draw(list.length), 1);
      if (action === 3) {
        expected.push(['greeted', leg]);
        leg.receive(HELLO.subarray(0, 10));
        leg.receive(HELLO.subarray(10));
      } else if (action === 4) {
        expected.push(['refused', leg]);
        leg.receive(Buffer.from('GET / HTTP/1.1'));
      } else leg.destroy(new Error('lost'));
    }
    assert.equal(greeter.size, list.length);
    longest = Math.max(longest, list.length);
  }
  assert.equal(longest, MOST);
  assert.ok(told.length > 500);
  assert.equal(told.length, expected.length);
  for (const [i, [what, leg]] of expected.entries()) {
    assert.equal(told[i][0], what);
    assert.equal(told[i][1], leg);
  }
  // No more come; those that are left go one by one.
  list.push(greeter.accept(handle()));
  let drained = 0;
  assert.ok(greeter.drain(() => drained++));
  while (list.length > 0) {
    assert.equal(drained, 0);
    list.pop().destroy();
  }
  assert.equal(drained, 1);
  assert.equal(greeter.size, 0);
});

/** A list that calls a hello late after 100 ms, and keeps connections for `patience`. */
function patientGreeter(t, patience) {
  const clock = movedClock();
  t.after(() => clock.stop());
  const told = [];
  const greeter = new Greeter(
    { copy: REPLICA, most: MOST, timeout: 100, patience },
    (_leg, _hello, _rest, late) => told.push(late ? 'late' : 'in time'),
    () => told.push('dropped'),
  );
  return { clock, told, greeter, leg: greeter.accept(handle()) };
}

for (const [after, what] of [
  [100, 'in time'],
  [150, 'late'],
  [990, 'late'],
])
  test(`a hello that comes after ${after} of 100 ms is ${what}`, (t) => {
    const { clock, told, leg } = patientGreeter(t, 1_000);
    clock.tick(after);
    leg.receive(HELLO);
    assert.deepEqual(told, [what]);
  });

test('a connection that says no whole hello is dropped at the end of its time, whenever it spoke', (t) => {
  const { clock, told, leg, greeter } = patientGreeter(t, 1_000);
  clock.tick(900);
  leg.receive(HELLO.subarray(0, 10));
  clock.tick(90);
  assert.deepEqual(told, []);
  clock.tick(60);
  assert.deepEqual(told, ['dropped']);
  assert.equal(greeter.size, 0);
});

test('without patience a connection is dropped when its hello would be late', (t) => {
  const { clock, told } = patientGreeter(t, undefined);
  clock.tick(100);
  assert.deepEqual(told, []);
  clock.tick(50);
  assert.deepEqual(told, ['dropped']);
});

test('where no more come, those that are there are kept no longer than one that comes now and is not late', (t) => {
  const { clock, told, greeter } = patientGreeter(t, 1_000);
  clock.tick(200);
  let drained = 0;
  assert.ok(greeter.drain(() => drained++));
  clock.tick(100);
  assert.equal(drained, 0);
  clock.tick(50);
  assert.equal(drained, 1);
  assert.deepEqual(told, ['dropped']);
});
