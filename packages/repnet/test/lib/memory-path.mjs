/**
 * A connection between two ends in memory, by a virtual clock: what a kernel and a path do to a stream, and faults of the path. Each
 * end stands for `Leg` (flow/leg.ts).
 */
import { systemError } from '../../dist/errors.js';

const RESET = systemError('ECONNRESET', 'read');

/** One direction: what is under way, and how much of it there may be. */
class Channel {
  /** Accepted and not read yet. */
  used = 0;
  /** Nothing that is sent arrives before then. */
  last = 0;
  silentUntil = 0;
  /** The path has told the receiver of an end that the sender did not mean. */
  cut = false;

  constructor(path, options) {
    Object.assign(this, { path, ...options });
  }

  /** Runs `arrive` when something sent now arrives. Order is kept. */
  carry(size, arrive) {
    const { time } = this.path;
    this.last = Math.max(this.last, time.now + this.latency + size / this.rate);
    this.#arriveAt(this.last, arrive);
  }

  #arriveAt(due, arrive) {
    const { time } = this.path;
    time.at(due, () => {
      if (this.path.dead) return;
      if (time.now >= this.silentUntil) return arrive();
      if (this.silentUntil !== Number.POSITIVE_INFINITY) this.#arriveAt(this.silentUntil, arrive);
    });
  }
}

export class MemoryLeg {
  backlog = 0;
  lost = false;
  stopped = true;
  ending = false;
  reason = undefined;
  unheard = true;
  remotePort = 1;
  #queue = [];
  #due = undefined;
  #waiting = [];
  #arrived = [];
  #pumping = false;
  #handle = true;
  #fin = false;

  constructor(path, side, copy) {
    Object.assign(this, { path, side, copy });
  }

  get out() {
    return this.path.channels[this.side];
  }
  get into() {
    return this.path.channels[1 - this.side];
  }
  get far() {
    return this.path.ends[1 - this.side];
  }
  get process() {
    return this.path.processes[this.side];
  }

  // ---------------------------------------------------------------- as Leg

  get unsent() {
    return this.#waiting.reduce((sum, { bytes }) => sum + (bytes?.length ?? 0), 0);
  }
  ref() {
    return this;
  }
  unref() {
    return this;
  }
  post(parts, done) {
    this.#queue.push({ parts, done });
    this.#due ??= setImmediate(() => this.flush());
  }
  flush() {
    const queue = this.#queue;
    this.#queue = [];
    this.#due = undefined;
    for (const { parts, done } of queue) this.#write(parts, done ?? (() => {}));
  }
  send(parts, done) {
    this.flush();
    this.#write(parts, done);
  }
  #write(parts, done) {
    if (!this.#handle) return done(this.reason ?? systemError('EPIPE', 'write'));
    if (this.wasReset) return done(systemError('ECONNRESET', 'write'));
    this.#waiting.push({ bytes: Buffer.concat(parts), done });
    this.#take();
  }
  finish(done) {
    this.flush();
    if (!this.#handle) return done();
    this.#waiting.push({ done, fin: true });
    this.#take();
  }

  whenFinished(then) {
    const end = this.#waiting.find(({ fin }) => fin);
    if (end === undefined) return then();
    const { done } = end;
    end.done = (error) => {
      then();
      done(error);
    };
  }

  /** The system takes as much as there is room for. */
  #take() {
    while (this.#waiting.length > 0) {
      const [first] = this.#waiting;
      if (first.fin) {
        this.#waiting.shift();
        this.#fin = true;
        this.out.carry(0, () => this.far.arrive({ fin: true }));
        this.#tell(first);
        continue;
      }
      const room = this.out.room - this.out.used;
      if (room <= 0) return;
      const size = Math.min(room, first.bytes.length);
      this.#carry(first.bytes.subarray(0, size));
      if (size < first.bytes.length) {
        first.bytes = first.bytes.subarray(size);
        return;
      }
      this.#waiting.shift();
      this.#tell(first);
    }
  }

  /** The system has taken what was written: its process learns so, at once if it is the one at work. */
  #tell({ done }) {
    const { time } = this.path;
    if (time.process === this.process) done(null);
    else time.as(this.process, () => done(null));
  }

  #carry(bytes) {
    this.out.used += bytes.length;
    for (let at = 0; at < bytes.length; at += this.out.segment) {
      const piece = bytes.subarray(at, at + this.out.segment);
      this.out.carry(piece.length, () => this.far.arrive({ bytes: piece }));
    }
  }

  destroy(error) {
    if (this.lost) return;
    this.lost = true;
    this.reason = error;
    this.#close(false);
    this.sink?.legLost(this, error);
  }
  close() {
    this.flush();
    this.lost = true;
    this.sink = undefined;
    this.#close(false);
  }
  abort() {
    this.flush();
    this.lost = true;
    this.sink = undefined;
    this.#close(true);
  }
  #close(reset) {
    if (!this.#handle) return;
    this.#handle = false;
    const waiting = this.#waiting;
    this.#waiting = [];
    const unread = this.#arrived.some(({ bytes }) => bytes !== undefined);
    if (!this.wasReset) {
      if (reset || unread) this.out.carry(0, () => this.far.arrive({ reset: true }));
      else if (!this.#fin) this.out.carry(0, () => this.far.arrive({ fin: true }));
    }
    setImmediate(() => {
      for (const { done, fin } of waiting)
        done(fin ? null : (this.reason ?? systemError('ECONNRESET', 'write')));
    });
  }

  resumeReading() {
    if (!this.stopped || this.lost) return;
    this.stopped = false;
    this.#pump();
  }
  receive(chunk) {
    if (this.sink?.legData(this, chunk) === false) this.stopped = true;
  }

  // ---------------------------------------------------------------- the path's side

  arrive(what) {
    if (this.into.cut && !what.reset && !what.cut) {
      // Whoever has ended the stream towards us answers what still comes.
      this.into.used -= what.bytes?.length ?? 0;
      return this.into.carry(0, () => this.far.arrive({ reset: true }));
    }
    if (what.cut) {
      this.into.cut = true;
      what = { fin: true };
    }
    if (!this.#handle) {
      this.into.used -= what.bytes?.length ?? 0;
      if (what.bytes !== undefined) this.out.carry(0, () => this.far.arrive({ reset: true }));
      return;
    }
    if (what.reset) this.wasReset = true;
    this.#arrived.push(what);
    this.#pump();
  }

  #pump() {
    if (this.#pumping || this.stopped) return;
    this.#pumping = true;
    this.path.time.as(this.process, () => {
      this.#pumping = false;
      this.#read();
    });
  }

  /** Hands over one read. */
  #read() {
    if (this.stopped || !this.#handle) return;
    const bytes = [];
    while (this.#arrived[0]?.bytes !== undefined && bytes.length < this.into.reads)
      bytes.push(this.#arrived.shift().bytes);
    if (bytes.length > 0) {
      const chunk = Buffer.concat(bytes);
      this.unheard = false;
      this.into.used -= chunk.length;
      this.far.room();
      this.receive(chunk);
    } else {
      const next = this.#arrived.shift();
      if (next === undefined) return;
      if (next.reset) this.destroy(RESET);
      else this.sink?.legFin(this);
    }
    if (this.#arrived.length > 0) this.#pump();
  }

  /** The receiver has read. */
  room() {
    if (this.#handle) this.#take();
  }
}

/** The two ends of one connection: [client, server]. `shape`: latency (ms), rate (bytes per ms), room, segment, reads. */
export class MemoryPath {
  dead = false;

  constructor(time, copy, shape, processes) {
    Object.assign(this, { time, processes });
    this.channels = [new Channel(this, shape), new Channel(this, shape)];
    this.ends = [new MemoryLeg(this, 0, copy), new MemoryLeg(this, 1, copy)];
  }

  /** Applies a fault; `sides`: to what these send. */
  strike({ kind, sides, ms }) {
    for (const side of sides)
      if (kind === 'silence') this.channels[side].silentUntil = this.time.now + ms;
      else if (kind === 'reset') this.ends[1 - side].arrive({ reset: true });
      else if (!this.channels[side].cut) this.ends[1 - side].arrive({ cut: true });
    if (kind === 'reset')
      for (const side of sides) this.channels[side].silentUntil = Number.POSITIVE_INFINITY;
  }
}
