/**
 * The receiving half of the state machine against a simple model, by every sequence of events to a depth: each byte once and in
 * order, whatever comes on which copy, and no end but the true one.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PRIMARY, REPLICA, ReceiveMachine } from '../dist/flow/machine.js';
import { range, walk } from './lib/walk.mjs';

const COPIES = [PRIMARY, REPLICA];
const STREAM = Buffer.from('abcdef');

/**
 * What the receiving side ought to do with a stream of six bytes, said of bytes: `came` lists what each copy has brought in
 * order of arrival, and the application has the longest beginning of the stream that is in one or the other.
 */
class ReceiveModel {
  copies = ['pending', 'pending'];
  done = [false, false];
  plain = 0;
  came = [new Set(), new Set()];
  arrived = 0;
  won = [0, 0];
  /** Pieces that came early, by offset; the earlier of two at one offset first. */
  early = [];
  text = '';
  known = 0;
  total = -1;
  alone = -1;
  rx = new ReceiveMachine();

  mayBring(copy) {
    return this.copies[copy] === 'open' && !this.done[copy];
  }

  /** End of what the second copy has brought. */
  get reach() {
    return Math.max(-1, ...this.came[REPLICA]) + 1;
  }

  /** Records ascend. Where the peer has lost the first copy the second skips nothing. */
  mayFollow(offset) {
    return offset >= this.reach && (this.alone < 0 || offset <= Math.max(this.alone, this.reach));
  }

  open(copy) {
    this.rx.open(copy);
    if (this.copies[copy] === 'pending') this.copies[copy] = 'open';
  }

  lose(copy) {
    this.rx.lose(copy);
    this.copies[copy] = 'gone';
  }

  /** As receiver.ts does: what is new goes to the application, and with it what came early. */
  plainBytes(n) {
    const { rx } = this;
    const chunk = STREAM.subarray(this.plain, this.plain + n);
    this.bring(PRIMARY, this.plain, n);
    this.plain += n;
    this.deliver(chunk.subarray(rx.acceptPlain(n)));
  }

  record(offset, n) {
    const { rx } = this;
    const bytes = STREAM.subarray(offset, offset + n);
    const early = offset > this.text.length;
    this.bring(REPLICA, offset, n);
    const skip = rx.acceptRecord(offset, n);
    assert.equal(skip === -1, early);
    if (early) rx.keepEarly(offset, bytes);
    else this.deliver(bytes.subarray(skip));
  }

  deliver(bytes) {
    this.text += bytes;
    if (bytes.length === 0) return;
    for (let next = this.rx.takeEarly(); next !== undefined; next = this.rx.takeEarly()) this.text += next;
  }

  bring(copy, offset, n) {
    this.arrived += n;
    this.known = Math.max(this.known, offset + n);
    for (const at of range(offset, offset + n)) this.came[copy].add(at);
    this.early.push({ copy, offset, n });
    this.early.sort((a, b) => a.offset - b.offset);
    let delivered = this.won[PRIMARY] + this.won[REPLICA];
    // The piece that has just come is looked at first: only if it is new does it make others deliverable.
    const take = (piece) => {
      this.early.splice(this.early.indexOf(piece), 1);
      const fresh = Math.max(0, piece.offset + piece.n - delivered);
      this.won[piece.copy] += fresh;
      delivered += fresh;
      return fresh;
    };
    const came = this.early.find((p) => p.copy === copy && p.offset === offset && p.n === n);
    if (offset > delivered || take(came) === 0) return;
    while (this.early.length > 0 && this.early[0].offset <= delivered) take(this.early[0]);
  }

  fin() {
    this.rx.fin();
    this.done[PRIMARY] = true;
  }

  end() {
    this.rx.end(STREAM.length);
    this.done[REPLICA] = true;
    this.total = STREAM.length;
  }

  giveFirstUp(offset) {
    const { rx } = this;
    rx.alone = this.alone = offset;
    rx.announce(offset);
    this.known = Math.max(this.known, offset);
  }

  /** A verdict that is final ends the flow. */
  get over() {
    return ['end', 'truncated'].includes(this.rx.verdict());
  }

  /** Neither copy can bring anything more: a pending one still may. */
  get silent() {
    return COPIES.every((copy) => this.copies[copy] === 'gone' || this.done[copy]);
  }

  check() {
    const { rx } = this;
    const union = new Set([...this.came[PRIMARY], ...this.came[REPLICA]]);
    let prefix = 0;
    while (union.has(prefix)) prefix++;
    assert.equal(this.text, STREAM.toString('latin1', 0, prefix), 'in order, once, as soon as it is there');
    assert.equal(rx.delivered, prefix);
    assert.deepEqual(rx.won, this.won);
    const waiting = rx.early.reduce((sum, { bytes }) => sum + bytes.length, 0);
    assert.equal(
      rx.won[PRIMARY] + rx.won[REPLICA] + rx.duplicate + waiting,
      this.arrived,
      'each byte counts once',
    );
    assert.equal(rx.earlyBytes, waiting + 256 * rx.early.length);
    const firstOver = this.copies[PRIMARY] === 'gone' || this.done[PRIMARY];
    const untold = firstOver && this.total < 0;
    assert.equal(
      rx.asks,
      untold && this.copies[REPLICA] === 'open',
      'asked, as long as there is whom to ask',
    );
    this.judge(prefix);
  }

  judge(prefix) {
    const { rx } = this;
    const verdict = rx.verdict();
    const declared = this.total >= 0;
    const missing = this.known > prefix || rx.early.length > 0;
    switch (verdict) {
      case 'end':
        if (declared) assert.equal(prefix, this.total);
        else
          assert.ok(
            this.done[PRIMARY] && this.copies[REPLICA] === 'gone' && !missing,
            'a FIN, and nothing against it',
          );
        break;
      case 'truncated':
        assert.ok(!declared || prefix < this.total);
        assert.ok(this.hopeless(missing), 'what is missing could still come');
        break;
      case 'wait': {
        assert.ok(this.copies[rx.suspect] !== 'gone', 'the suspect is not dead already');
        break;
      }
      default:
        assert.equal(verdict, 'open');
        assert.ok(!declared || prefix < this.total);
        assert.ok(!this.silent, 'an open flow on which nothing can come');
        assert.ok(!missing || this.mayStillCome(prefix), 'an open flow with a hole that nothing can fill');
        assert.ok(!this.bareFin(missing, declared), 'a FIN that is not looked into');
    }
  }

  /** A connection may bring this byte, for all that is known; the second brings its records in ascending order. */
  mayStillCome(byte) {
    return (
      this.mayYetBring(PRIMARY) || (this.mayYetBring(REPLICA) && this.reach <= byte && this.alone <= byte)
    );
  }

  mayYetBring(copy) {
    return this.copies[copy] !== 'gone' && !this.done[copy];
  }

  /** It may be the end, or the fault of that connection: a question with an answer, or a time limit. */
  bareFin(missing, declared) {
    const against = declared || missing || this.alone >= 0 || this.known > this.plain;
    return this.done[PRIMARY] && !against;
  }

  /** No copy that is left brings what is missing, as far as the peer has said. */
  hopeless(missing) {
    if (this.silent) return true;
    // The plain copy has ended, and the other has skipped what only that one had.
    return missing && !this.mayYetBring(PRIMARY);
  }

  key() {
    const { copies, done, plain, won, early, text, known, total, alone, arrived } = this;
    const kept = [...this.rx.early]
      .sort((a, b) => a.offset - b.offset || a.order - b.order)
      .map(({ offset, bytes }) => [offset, bytes.length]);
    const came = this.came.map((set) => [...set].sort());
    return JSON.stringify([copies, done, plain, won, early, kept, text, known, total, alone, arrived, came]);
  }
}

function receiveEvents() {
  const records = [
    [0, 2],
    [0, 4],
    [1, 2],
    [2, 2],
    [3, 1],
    [3, 3],
    [4, 2],
  ];
  return [
    ...COPIES.flatMap((copy) => [
      { name: `open ${copy}`, may: (m) => m.copies[copy] === 'pending', run: (m) => m.open(copy) },
      { name: `lose ${copy}`, may: (m) => m.copies[copy] !== 'gone', run: (m) => m.lose(copy) },
    ]),
    ...[1, 3].map((n) => ({
      name: `plain ${n}`,
      may: (m) => m.mayBring(PRIMARY) && m.plain + n <= STREAM.length,
      run: (m) => m.plainBytes(n),
    })),
    { name: 'FIN', may: (m) => m.mayBring(PRIMARY), run: (m) => m.fin() },
    ...records.map(([offset, n]) => ({
      name: `record ${offset}+${n}`,
      may: (m) => m.mayBring(REPLICA) && m.mayFollow(offset),
      run: (m) => m.record(offset, n),
    })),
    { name: 'end', may: (m) => m.mayBring(REPLICA), run: (m) => m.end() },
    ...[2, 5].map((offset) => ({
      name: `alone at ${offset}`,
      may: (m) => m.mayBring(REPLICA) && m.alone < 0 && offset >= m.known,
      run: (m) => m.giveFirstUp(offset),
    })),
  ].map(({ name, may, run }) => ({ name, may: (m) => !m.over && may(m), run }));
}

test('receiving: each byte once and in order, and no end but the true one, to depth 8', () => {
  const { states, taken } = walk({
    start: () => new ReceiveModel(),
    events: receiveEvents(),
    check: (m) => m.check(),
    key: (m) => m.key(),
    depth: 8,
  });
  for (const [event, times] of taken) assert.ok(times > 0, `${event} was never taken`);
  assert.ok(states > 5_000, `${states} states`);
});

test('a wait comes to an end when those that are waited for are taken for dead, one after the other', () => {
  walk({
    start: () => new ReceiveModel(),
    events: receiveEvents(),
    check(m) {
      // As the flow does when the time is up; the machine is not used further.
      for (let n = 0; n < 3 && m.rx.verdict() === 'wait'; n++) m.rx.lose(m.rx.suspect);
      assert.notEqual(m.rx.verdict(), 'wait');
    },
    key: (m) => m.key(),
    depth: 6,
  });
});
