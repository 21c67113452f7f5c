/**
 * The sending half of the state machine against a simple model, by every sequence of events to a depth: which bytes went where,
 * nothing left out, nothing twice; every operation.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { other, PRIMARY, REPLICA, SendMachine } from '../dist/flow/machine.js';
import { range, walk } from './lib/walk.mjs';

const THRESHOLD = 5;
const SLACK = 1;
const COPIES = [PRIMARY, REPLICA];

/**
 * What the sending side ought to do, said of bytes: `sent` lists the offsets that each copy was given, in order; `kept` is how
 * far the archive reaches, undefined if there is none.
 */
class SendModel {
  copies = ['pending', 'pending'];
  sent = [[], []];
  offset = 0;
  kept = 0;
  doubling = false;
  carrier = PRIMARY;
  message = 0;
  allowance = THRESHOLD;
  verdict;
  ended = false;
  expectsFirst = true;

  constructor(begun) {
    this.tx = new SendMachine(THRESHOLD, begun);
    if (begun === undefined) return;
    this.copies[PRIMARY] = 'open';
    this.offset = begun.offset;
    this.sent[PRIMARY] = range(0, begun.offset);
    this.kept = begun.archived ? begun.offset : undefined;
  }

  get state() {
    const [open, pending] = ['open', 'pending'].map((state) => this.copies.filter((c) => c === state).length);
    if (open === 2) return this.doubling ? 'DUP_CONN' : 'CHOSEN';
    if (open === 1) return pending === 1 && this.kept !== undefined ? 'ONE_CONN' : 'CHOSEN';
    return pending > 0 ? 'ONE_CONN' : 'ENDED';
  }

  /** Nothing carries what is written now, and nothing keeps it: the flow holds the application up. */
  get stuck() {
    return this.state === 'ONE_CONN' && this.kept === undefined;
  }

  /** All that the second copy alone has been given is kept for the first, which may still come. */
  get awaitsFirst() {
    const [first, second] = this.copies;
    return first === 'pending' && second === 'open' && this.kept !== undefined && this.expectsFirst;
  }

  get room() {
    if (this.awaitsFirst) return Math.max(0, THRESHOLD - this.offset);
    return this.state === 'DUP_CONN' ? Math.max(0, this.allowance - (this.offset - this.message)) : 0;
  }

  /** The archive is for a copy that is pending, and for no other. */
  settle() {
    if (!this.copies.includes('pending')) this.kept = undefined;
  }

  open(copy) {
    const first = this.copies[copy] === 'pending';
    const usable = first && (copy === REPLICA || this.kept !== undefined);
    const replay = usable && this.kept > 0;
    assert.equal(this.tx.open(copy), replay);
    if (!first) return;
    this.copies[copy] = usable ? 'open' : 'gone';
    if (replay) this.sent[copy].push(...range(0, this.kept));
    const rest = this.copies[other(copy)];
    if (rest !== 'open') this.carrier = copy;
    else if (usable) {
      this.doubling = this.kept !== undefined;
    }
    if (!usable) this.carrier = other(copy);
    this.settle();
  }

  lose(copy) {
    this.tx.lose(copy);
    if (this.copies[copy] === 'gone') return;
    this.copies[copy] = 'gone';
    if (this.copies[other(copy)] !== 'gone') this.carrier = other(copy);
    this.settle();
  }

  write(n) {
    const { tx } = this;
    const before = this.state;
    if (before === 'DUP_CONN' || this.awaitsFirst) n = Math.min(n, tx.room);
    const bytes = range(this.offset, this.offset + n);
    const route = tx.route(n);
    if (before === 'ENDED') return assert.deepEqual(route, { copies: 0, archive: false });
    this.offset += n;
    const to = COPIES.filter((copy) =>
      before === 'DUP_CONN' ? true : copy === this.carrier && this.copies[copy] === 'open',
    );
    for (const copy of to) this.sent[copy].push(...bytes);
    if (before === 'ONE_CONN' && this.kept !== undefined) {
      const tooMuch = to.length > 0 && this.offset > THRESHOLD;
      this.kept = tooMuch ? undefined : this.offset;
    }
    assert.deepEqual(route, {
      copies: to.reduce((set, copy) => set | (1 << copy), 0),
      archive: this.kept !== undefined,
    });
  }

  choose() {
    this.tx.choose();
    this.chosen();
  }

  chosen() {
    if (this.state !== 'DUP_CONN') return;
    this.doubling = false;
    this.carrier = PRIMARY;
  }

  stop() {
    const heeded = this.state === 'DUP_CONN';
    assert.equal(this.tx.stop(), heeded);
    if (heeded) this.chosen();
  }

  forgo() {
    this.tx.forgo();
    this.kept = undefined;
  }

  extend() {
    this.tx.extend();
    this.allowance *= 2;
    this.verdict = undefined;
  }

  report(offset, first) {
    this.tx.report(offset, first, SLACK);
    if (offset <= this.message) return;
    this.verdict = offset - first <= SLACK ? 'keeps up' : 'trails';
  }

  giveFirstUp() {
    this.tx.expectsFirst = this.expectsFirst = false;
  }

  newMessage() {
    const again = this.state === 'CHOSEN' && this.copies.every((state) => state === 'open');
    assert.equal(this.tx.newMessage(), again);
    if (again) this.doubling = true;
    this.message = this.offset;
    this.allowance = THRESHOLD;
    this.verdict = undefined;
  }

  end() {
    this.tx.end();
    this.ended = true;
  }

  check() {
    const { tx } = this;
    const { room } = this;
    assert.deepEqual(
      {
        state: tx.state,
        copies: [...tx.copies],
        offset: tx.offset,
        message: tx.message,
        archived: tx.archived,
        room: tx.room,
        verdict: tx.verdict,
        total: tx.total,
      },
      {
        state: this.state,
        copies: this.copies,
        offset: this.offset,
        message: this.message,
        archived: this.kept !== undefined,
        room,
        verdict: this.verdict,
        total: this.ended ? this.offset : -1,
      },
    );
    if (tx.state === 'CHOSEN' || tx.state === 'ONE_CONN') assert.equal(tx.chosen, this.carrier);
    for (const copy of COPIES) {
      const sent = this.sent[copy];
      // Ascending: nothing twice on one connection.
      for (let i = 1; i < sent.length; i++) assert.ok(sent[i] > sent[i - 1], `copy ${copy}: ${sent}`);
      if (copy === PRIMARY) assert.deepEqual(sent, range(0, sent.length), 'a plain copy has no hole');
      if (tx.state === 'ONE_CONN' && this.kept !== undefined && tx.copies[copy] === 'open')
        assert.equal(sent.length, this.offset, 'the one copy has carried everything');
    }
    // The law: the first copy is given everything as long as it is open, and while it may come
    // what the second alone has been given is kept for it.
    if (this.copies[PRIMARY] === 'open') assert.equal(this.sent[PRIMARY].length, this.offset);
    const alone =
      this.sent[REPLICA].length > 0 && this.copies[PRIMARY] === 'pending' && this.copies[REPLICA] === 'open';
    if (alone && this.expectsFirst) assert.equal(this.kept, this.offset);
    if (tx.state === 'ENDED') return;
    for (const copy of [PRIMARY, REPLICA])
      assert.equal(this.tx.hasAll(copy), this.sent[copy].length === this.offset);
    const reached = new Set([...this.sent[PRIMARY], ...this.sent[REPLICA], ...range(0, this.kept ?? 0)]);
    assert.equal(reached.size, this.offset, 'no byte is left out');
  }

  key() {
    const { copies, sent, offset, kept, doubling, carrier, message, allowance, verdict, ended } = this;
    return JSON.stringify([
      this.expectsFirst,
      copies,
      sent,
      offset,
      kept,
      doubling,
      carrier,
      message,
      allowance,
      verdict,
      ended,
    ]);
  }
}

const always = () => true;
const SEND_EVENTS = [
  ...COPIES.flatMap((copy) => [
    { name: `open ${copy}`, may: always, run: (m) => m.open(copy) },
    { name: `lose ${copy}`, may: always, run: (m) => m.lose(copy) },
  ]),
  { name: 'stop', may: always, run: (m) => m.stop() },
  { name: 'choose', may: always, run: (m) => m.choose() },
  ...[2, 4].map((n) => ({
    name: `write ${n}`,
    may: (m) => !m.stuck && !m.ended && !((m.state === 'DUP_CONN' || m.awaitsFirst) && m.tx.room === 0),
    run: (m) => m.write(n),
  })),
  // For want of room in all archives, or in the budget: of a flow that a connection carries.
  {
    name: 'forgo',
    may: (m) => m.copies.includes('open') && m.kept !== undefined && !m.awaitsFirst,
    run: (m) => m.forgo(),
  },
  { name: 'extend', may: (m) => m.allowance <= 2 * THRESHOLD, run: (m) => m.extend() },
  { name: 'report: the first keeps up', may: always, run: (m) => m.report(m.offset, m.offset) },
  { name: 'report: the first trails', may: always, run: (m) => m.report(m.offset, m.offset - SLACK - 1) },
  { name: 'report: of an earlier message', may: always, run: (m) => m.report(m.message, 0) },
  {
    name: 'the first is given up',
    may: (m) => m.expectsFirst && m.copies[PRIMARY] === 'pending',
    run: (m) => m.giveFirstUp(),
  },
  { name: 'new message', may: (m) => !m.ended, run: (m) => m.newMessage() },
  { name: 'end', may: (m) => !m.ended, run: (m) => m.end() },
];

for (const [name, begun] of [
  ['from the start', undefined],
  ['a flow that began plain, archived', { offset: 3, archived: true }],
  ['a flow that began plain, beyond the archive', { offset: 7, archived: false }],
])
  test(`sending, ${name}: the model's routes, states and copies, to depth 7`, () => {
    const { states, taken: events } = walk({
      start: () => new SendModel(begun),
      events: SEND_EVENTS,
      check: (m) => m.check(),
      key: (m) => m.key(),
      depth: 7,
    });
    for (const [event, times] of events) assert.ok(times > 0 || begun, `${event} never was`);
    assert.ok(states > 1_000, `${states} states`);
  });
