/**
 * Records whose fields lie at their bounds (0, 1, max - 1, max, and beside what the receiver has), in reads that often end with an old
 * record: nothing is thrown, what is kept is bounded, and a copy is given up only for a record that cannot be. By default 20,000 records;
 * REPNET_BOUND_RECORDS=1000000 is the long form (`make soak`), and REPNET_FAULT_SEED draws others.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { EarlyPieces } from '../dist/flow/early.js';
import { Flow } from '../dist/flow/flow.js';
import { PRIMARY, REPLICA } from '../dist/flow/machine.js';
import { dataHeader, RECORD_HEADER_BYTES, RECORD_MAX_BYTES, Record, STREAM_MAX_BYTES } from '../dist/wire.js';
import { randomFrom } from './lib/random.mjs';

const RECORDS = Number(process.env.REPNET_BOUND_RECORDS ?? 20_000);
const SEED = Number(process.env.REPNET_FAULT_SEED ?? 20261127);
const READ = 65_536;
/** What a piece is counted for beside its own bytes. */
const PIECE = 256;

const TYPES = [...Object.values(Record), 0, Record.alone + 1, Record.skipped - 1, 255];

/** A data record of `length` zeros. */
const dataRecord = (offset, length) => Buffer.concat([dataHeader(offset, length), Buffer.alloc(length)]);

/** A connection that a hostile peer writes to: it takes what it is sent, and stops reading when it is told to. */
class HostileLeg {
  backlog = 0;
  stopped = false;
  lost = false;
  /** How many records its last read held. */
  records = 0;

  constructor(copy, flow) {
    Object.assign(this, { copy, sink: flow });
  }
  resumeReading() {
    this.stopped = false;
  }
  #take(parts, done) {
    for (const part of parts) assert.ok(part.length > 0);
    if (done) setImmediate(done, null);
  }
  send(parts, done) {
    this.#take(parts, done);
  }
  post(parts, done) {
    this.#take(parts, done);
  }
  flush() {}
  ref() {
    return this;
  }
  unref() {
    return this;
  }
  whenFinished(then) {
    then();
  }
  finish(done) {
    setImmediate(done, null);
  }
  destroy(error) {
    if (this.lost) return;
    this.lost = true;
    this.error = error;
    this.sink?.legLost(this, error);
  }
  close() {
    this.lost = true;
    this.sink = undefined;
  }
  abort() {
    this.close();
  }
  read(bytes) {
    if (!this.sink.legData(this, bytes)) this.stopped = true;
  }
}

const TAME = { control: 0, malformed: 0, longest: 0, old: 0, zero: 0, ahead: 0, last: 0, beyond: 0 };
/** What some peers do and no more: flood beyond a hole, or be as far as a stream can be when a report is due. */
const SINGLE_MINDED = [
  { ...TAME, ahead: 1, old: 1 },
  { ...TAME, zero: 0.5, beyond: 1 },
];

class HostileFlow {
  delivered = 0;
  destroyed = false;
  legs = [];

  constructor(random) {
    this.random = random;
    // How often this peer says something else than data, malforms it, claims the longest records, ends a read
    // with an old one, begins again at 0, leaves a hole, goes beyond
    // the longest stream, and stays just within it.
    this.share = {
      control: this.pick([0, 0.01, 0.2]),
      malformed: this.pick([0, 0, 0.1]),
      longest: this.pick([0, 0.02]),
      old: this.pick([0, 0.5, 1]),
      zero: this.pick([0, 0, 0.5]),
      ahead: this.pick([0, 0.5, 1]),
      beyond: this.pick([0, 0, 0.3]),
      last: this.pick([0, 0, 0.002, 0.2]),
    };
    Object.assign(this.share, this.pick([{}, ...SINGLE_MINDED]));
    this.threshold = this.pick([1, 1_000, 100_000]);
    const outer = {
      connecting: false,
      destroyed: false,
      unreferenced: true,
      deliver: (chunk) => {
        this.delivered += chunk?.length ?? 0;
        return true;
      },
      destroy: (error) => {
        outer.destroyed = true;
        this.error = error;
        this.flow.close(false);
      },
      touch() {},
    };
    const options = { threshold: this.threshold, lull: 50, copyDelay: 0, pairTimeout: 1, loser: 'rst' };
    this.flow = new Flow(outer, options, { receives: this.pick(['request', 'reply']) });
    this.flow.peerThreshold = this.pick([0, 1, 100_000, 2 ** 32 - 2, 2 ** 32 - 1]);
    const copies = random() < 0.5 ? [PRIMARY, REPLICA] : [REPLICA, PRIMARY];
    for (const copy of copies.slice(0, random() < 0.1 ? 1 : 2)) {
      const leg = new HostileLeg(copy, this.flow);
      this.legs.push(leg);
      this.flow.open(leg);
    }
    this.flow.resume();
    if (random() < 0.7) this.flow.write(Buffer.alloc(this.pick([1, 999, 100_001])), () => {});
  }

  pick(values) {
    return values[Math.floor(this.random() * values.length)];
  }

  offset() {
    const { delivered } = this.flow.rx;
    const { offset } = this.flow.tx;
    let near = this.pick([0, delivered, delivered, offset]);
    if (this.random() < this.share.ahead) near = this.pick([delivered + 1_000_000, this.flow.rx.highest]);
    if (this.random() < this.share.last) near = STREAM_MAX_BYTES;
    const beside = near + this.pick([-301, -300, -2, -1, 0, 1, 2, 300, Math.floor(this.random() * 10_000)]);
    return Math.min(Math.max(beside, 0), STREAM_MAX_BYTES);
  }

  /** A record, of whose payload no more comes than a read holds. */
  record() {
    const is = (share) => this.random() < share;
    const type = is(this.share.control) ? this.pick(TYPES) : Record.data;
    const skipped = type >= Record.skipped;
    let length = this.pick([1, 1, 2, 6, 300]);
    if (is(this.share.longest)) length = this.pick([RECORD_MAX_BYTES - 1, RECORD_MAX_BYTES]);
    if (is(this.share.malformed)) length = 0;
    else if (type !== Record.data && !skipped) length = type === Record.report ? 6 : 0;
    const header = Buffer.alloc(RECORD_HEADER_BYTES);
    header.writeUInt32BE(((type << 24) | length) >>> 0, 0);
    header.writeUIntBE(is(this.share.zero) ? 0 : this.offset(), 4, 6);
    const body = Buffer.alloc(Math.min(length, 40_000));
    if (type === Record.report && length === 6) body.writeUIntBE(this.offset(), 0, 6);
    return Buffer.concat([header, body]);
  }

  /** One read of the second connection; returns how many records were in it. */
  step() {
    const leg = this.legs.find((each) => each.copy === REPLICA);
    if (leg === undefined || leg.lost || leg.stopped) return 0;
    const records = [];
    let size = 0;
    for (let n = this.pick([1, 2, 20, 3_000]); n > 0 && size < READ - 40_100; n--) {
      records.push(this.record());
      size += records.at(-1).length;
    }
    if (this.random() < this.share.old) records.push(dataRecord(0, 1));
    if (this.random() < this.share.beyond)
      records.push(dataRecord(STREAM_MAX_BYTES - this.pick([0, 1, 2]), 2));
    leg.records = records.length;
    leg.read(Buffer.concat(records));
    this.check();
    return records.length;
  }

  check() {
    const { rx } = this.flow;
    for (const { copy, records, error } of this.legs) {
      const limit = 4 * this.threshold + READ + PIECE * (records + 1);
      if (copy === REPLICA) assert.ok(rx.earlyBytes <= limit, `keeps ${rx.earlyBytes} of ${limit}`);
      if (error) assert.equal(error.code, 'ERR_REPNET_PROTOCOL', error.stack);
    }
    assert.ok(rx.delivered <= STREAM_MAX_BYTES);
    if (this.error) assert.match(this.error.code, /^(ERR_REPNET_|ECONNRESET|EPIPE)/, this.error.stack);
  }

  close() {
    this.flow.close(true);
  }
}

test(`${RECORDS} records at the bounds of their fields break nothing and are not kept beyond the limits`, async () => {
  const random = randomFrom(SEED);
  let records = 0;
  const seen = { flows: 0, full: 0, refused: 0, ended: 0 };
  while (records < RECORDS) {
    const hostile = new HostileFlow(random);
    seen.flows++;
    for (let turn = 0; turn < 30; turn++) {
      const n = hostile.step();
      if (n === 0) break;
      records += n;
      // Reports leave at the end of a turn.
      if (random() < 0.3) await new Promise((resolve) => setImmediate(resolve));
      hostile.check();
    }
    if (hostile.legs.some((leg) => leg.stopped)) seen.full++;
    if (hostile.legs.some((leg) => leg.error)) seen.refused++;
    if (hostile.error) seen.ended++;
    hostile.close();
  }
  await new Promise((resolve) => setImmediate(resolve));
  // Each outcome is met.
  for (const [what, times] of Object.entries(seen)) assert.ok(times > 0, `${what}: ${JSON.stringify(seen)}`);
});

test('pieces that come in descending order cost the logarithm of their number each, to keep and to take', () => {
  const COUNT = 20_000;
  let comparisons = 0;
  const counted = (offset) => ({
    valueOf() {
      comparisons++;
      return offset;
    },
  });
  const pieces = new EarlyPieces();
  const byte = Buffer.alloc(1);
  for (let n = COUNT; n > 0; n--) pieces.add(counted(n), byte);
  const taken = [];
  for (let next = pieces.takeUpTo(COUNT); next !== undefined; next = pieces.takeUpTo(COUNT))
    taken.push(Number(next.offset));
  assert.deepEqual(
    taken,
    Array.from({ length: COUNT }, (_, n) => n + 1),
  );
  assert.equal(pieces.size, 0);
  const perPiece = comparisons / COUNT;
  assert.ok(perPiece < 8 * Math.log2(COUNT), `${perPiece} comparisons for each piece`);
});

test('of two pieces at one offset the one that came first is taken first', () => {
  const pieces = new EarlyPieces();
  for (const text of ['first', 'second', 'third']) pieces.add(7, Buffer.from(text));
  assert.equal(pieces.takeUpTo(6), undefined);
  const texts = [1, 2, 3].map(() => String(pieces.takeUpTo(7).bytes));
  assert.deepEqual(texts, ['first', 'second', 'third']);
});
