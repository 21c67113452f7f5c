/** The race of a name's addresses (RFC 8305), by attempts of memory and a clock that the test moves. */
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { AddressRace } from '../dist/client/race.js';
import { tellsAttempts } from '../dist/net-internals.js';
import { movedClock } from './lib/moved-clock.mjs';

const PORT = 80;
const [A, B, C] = ['10.0.0.1', '2001:db8::1', '10.0.0.2'];

let log;
beforeEach(() => {
  log = [];
});

/** An attempt that does what the test says. */
class Fake {
  isEstablished = false;
  refused = undefined;
  constructor(address, sink) {
    Object.assign(this, { address, sink });
  }
  start() {
    log.push(`begin ${this.address}`);
    if (this.refused !== undefined) this.fail(this.refused);
  }
  open() {
    this.sink.attemptOpen(this, `handle of ${this.address}`);
  }
  fail(code) {
    this.sink.attemptFailed(this, Object.assign(new Error(code), { code, syscall: 'connect' }));
  }
  abandon(reset) {
    log.push(`${reset ? 'reset' : 'drop'} ${this.address}`);
  }
  passTo() {
    log.push(`end ${this.address} in order`);
  }
  ref() {}
  unref() {
    log.push(`unref ${this.address}`);
  }
}

function race(t, addresses, options = {}, make = (address, sink) => new Fake(address, sink)) {
  const clock = movedClock();
  t.after(() => clock.stop());
  const attempts = {};
  const sink = {
    raceEvent: (event, args) => log.push(`${event} ${args[0]}`),
    raceWon: (attempt, handle, order) => log.push(`won ${attempt.address}, ${handle}, ${order}`),
    raceFailed: (error) =>
      log.push({ code: error.code, causes: error.errors.map(({ code }) => code), error }),
  };
  const all = { port: PORT, delay: 250, loser: 'fin', ...options };
  const begun = new AddressRace(sink, addresses, all, (address, to) => {
    attempts[address] = make(address, to);
    return attempts[address];
  });
  return { race: begun, attempts, clock };
}

/** The event of a failed attempt, in versions of Node that have it. */
const failed = (address) => (tellsAttempts ? [`connectionAttemptFailed ${address}`] : []);
const ticks = () => new Promise((done) => process.nextTick(() => process.nextTick(done)));

test('the next address starts after the delay, and the delay ends no attempt', (t) => {
  const { race: begun, attempts, clock } = race(t, [A, B, C]);
  begun.start();
  clock.tick(249);
  assert.deepEqual(log, [`begin ${A}`]);
  clock.tick(1);
  assert.deepEqual(log, [`begin ${A}`, `begin ${B}`]);
  clock.tick(60_000);
  assert.deepEqual(log, [`begin ${A}`, `begin ${B}`, `begin ${C}`]);
  assert.deepEqual(
    begun.attempted,
    [A, B, C].map((address) => `${address}:${PORT}`),
  );
  attempts[A].open();
  assert.deepEqual(log.slice(3), [`drop ${B}`, `drop ${C}`, `won ${A}, handle of ${A}, 0`]);
});

test('the next address starts at once when an attempt fails, and the last one is waited for', (t) => {
  const { race: begun, attempts, clock } = race(t, [A, B, C]);
  begun.start();
  clock.tick(250);
  attempts[B].fail('ECONNREFUSED');
  assert.deepEqual(log, [`begin ${A}`, `begin ${B}`, ...failed(B), `begin ${C}`]);
  attempts[C].fail('ECONNREFUSED');
  clock.tick(60_000);
  attempts[A].open();
  assert.equal(log.at(-1), `won ${A}, handle of ${A}, 0`);
});

test('losers are dropped before the winner is reported: in order where the system has established them', (t) => {
  const { race: begun, attempts, clock } = race(t, [A, B, C]);
  begun.start();
  clock.tick(500);
  attempts[A].isEstablished = true;
  attempts[C].open();
  assert.deepEqual(log.slice(3), [
    `unref ${A}`,
    `end ${A} in order`,
    `drop ${B}`,
    `won ${C}, handle of ${C}, 2`,
  ]);
});

test("losers are reset with loser: 'rst'", (t) => {
  const { race: begun, attempts, clock } = race(t, [A, B], { loser: 'rst' });
  begun.start();
  clock.tick(250);
  attempts[A].isEstablished = true;
  attempts[B].open();
  assert.deepEqual(log.slice(2), [`reset ${A}`, `won ${B}, handle of ${B}, 1`]);
});

test('every address fails: one AggregateError with each cause, in the order of the attempts', (t) => {
  const { race: begun, attempts, clock } = race(t, [A, B]);
  begun.start();
  clock.tick(250);
  attempts[B].fail('EHOSTUNREACH');
  attempts[A].fail('ECONNREFUSED');
  const { code, causes, error } = log.at(-1);
  assert.deepEqual([code, causes], ['ECONNREFUSED', ['ECONNREFUSED', 'EHOSTUNREACH']]);
  assert.ok(error instanceof AggregateError);
});

test('an address that the system refuses to connect to fails while it begins', (t) => {
  const { race: begun } = race(t, [A, B], {}, (address, sink) =>
    Object.assign(new Fake(address, sink), { refused: 'ENETUNREACH' }),
  );
  begun.start();
  assert.deepEqual(
    log.map((entry) => entry.causes ?? entry),
    [`begin ${A}`, ...failed(A), `begin ${B}`, ...failed(B), ['ENETUNREACH', 'ENETUNREACH']],
  );
});

test('no attempt starts where the system has established one that is not reported yet', (t) => {
  const { race: begun, attempts, clock } = race(t, [A, B]);
  begun.start();
  attempts[A].isEstablished = true;
  clock.tick(1_000);
  assert.deepEqual(log, [`begin ${A}`]);
});

test('an early second attempt starts at once if it may', async (t) => {
  const { race: begun } = race(t, [A, B, C], { early: { after: 0, take: () => true } });
  begun.start();
  assert.deepEqual(log, [`begin ${A}`]);
  await ticks();
  assert.deepEqual(log, [`begin ${A}`, `begin ${B}`]);
});

test('an early second attempt starts after its own delay, the third after that of all', (t) => {
  const { race: begun, clock } = race(t, [A, B, C], { early: { after: 50, take: () => true } });
  begun.start();
  clock.tick(50);
  assert.equal(log.length, 2);
  clock.tick(249);
  assert.equal(log.length, 2);
  clock.tick(1);
  assert.equal(log.length, 3);
});

test('over budget the second attempt waits for the delay', async (t) => {
  const { race: begun, clock } = race(t, [A, B], { early: { after: 50, take: () => false } });
  begun.start();
  clock.tick(249);
  assert.deepEqual(log, [`begin ${A}`]);
  clock.tick(1);
  assert.deepEqual(log, [`begin ${A}`, `begin ${B}`]);
});

test('an early second attempt is not made where the first is established or has failed meanwhile', async (t) => {
  for (const happens of [
    (fake) => Object.assign(fake, { isEstablished: true }),
    (fake) => fake.fail('EPERM'),
  ]) {
    log = [];
    let asked = 0;
    const { race: begun, attempts } = race(t, [A, B], { early: { after: 0, take: () => asked++ === 0 } });
    begun.start();
    happens(attempts[A]);
    await ticks();
    assert.equal(asked, 0);
  }
});

test('a blocked address fails without an attempt', (t) => {
  const { race: begun, attempts } = race(t, [A, B], { isBlocked: (address) => address === A });
  begun.start();
  attempts[A].sink.attemptEvent(attempts[A], 'connectionAttempt', [A]);
  attempts[A].fail('ERR_IP_BLOCKED');
  assert.deepEqual(log, [`begin ${A}`, ...failed(A), `begin ${B}`]);
  assert.deepEqual(begun.attempted, [`${B}:${PORT}`]);
});

test('a race that is given up drops every attempt and reports nothing', (t) => {
  const { race: begun, attempts, clock } = race(t, [A, B, C]);
  begun.start();
  clock.tick(250);
  begun.abandon(false);
  clock.tick(1_000);
  attempts[A].fail('ECONNREFUSED');
  attempts[A].sink.attemptEvent(attempts[A], 'connectionAttempt', [A]);
  assert.deepEqual(log, [`begin ${A}`, `begin ${B}`, `drop ${A}`, `drop ${B}`]);
});

test('unref holds for attempts that begin later', (t) => {
  const { race: begun, clock } = race(t, [A, B]);
  begun.start();
  begun.unref();
  clock.tick(250);
  assert.deepEqual(log, [`begin ${A}`, `unref ${A}`, `unref ${B}`, `begin ${B}`]);
});
