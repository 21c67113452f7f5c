/**
 * One replicated flow: joins the two connections of a flow to the one socket that the application sees. What to do is
 * decided in machine.ts; this file moves the bytes.
 */
import { RepnetError } from '../errors.js';
import { channels, counters } from '../stats.js';
import {
  ANSWER_BYTES,
  Record as Control,
  controlRecord,
  decodeAnswer,
  RecordParser,
  type RecordSink,
} from '../wire.js';
import { Archive } from './archive.js';
import * as budget from './budget.js';
import type { Leg, LegSink } from './leg.js';
import { endLinger, type Linger, startLinger } from './linger.js';
import { type Copy, other, PRIMARY, REPLICA, ReceiveMachine, SendMachine } from './machine.js';
import { patientTimeout } from './patience.js';
import { copyRecords, pushRecords } from './records.js';

type Callback = (error?: Error | null) => void;

/** What a flow needs of the application's socket. */
export interface Outer {
  readonly connecting: boolean;
  readonly destroyed: boolean;
  /** The application does not want the flow to keep the process alive. */
  readonly unreferenced: boolean;
  /** Hands bytes (null: the end) to the application; false: it is behind. */
  deliver(chunk: Buffer | null): boolean;
  destroy(error?: Error): unknown;
  /** Any activity restarts the idle timer of `setTimeout`. */
  touch(): void;
}

export interface FlowOptions {
  threshold: number;
  lull: number;
  copyDelay: number;
  pairTimeout: number;
  loser: 'rst' | 'fin';
}

export interface FlowStart {
  framed: readonly [boolean, boolean];
  /** A flow that began as a plain accepted connection: what passed before it was paired. */
  received?: number;
  sent?: number;
  archive?: Archive | undefined;
  /** The plain copy has been read to its end, and the application been told. */
  ended?: boolean;
  /** The plain copy has ended, and the application not been told. */
  fin?: boolean;
}

/** Milliseconds an elephant waits at the threshold for the receiver's verdict on which copy to keep. */
const VERDICT_TIMEOUT = 25;
/** Bytes by which the first copy may trail the second and still be kept at the threshold. */
const VERDICT_SLACK = 32 * 1024;
/** Milliseconds after a bare FIN within which word of it is expected on the second copy, before it is asked for. */
const QUERY_DELAY = 5;
/** Bytes by which a copy trails before it is told to stop. */
const STOP_LAG = 32 * 1024;

interface Held {
  bytes: Buffer;
  done: Callback;
}

export class Flow implements LegSink, RecordSink {
  readonly outer: Outer;
  readonly options: FlowOptions;
  readonly legs: [Leg | undefined, Leg | undefined] = [undefined, undefined];
  readonly tx: SendMachine;
  readonly rx: ReceiveMachine;
  readonly framed: readonly [boolean, boolean];
  /** Called when both connections are settled or the flow is over; the pairing that made the flow forgets it. */
  onClosed: (() => void) | undefined;
  /** Client side: a copy was lost; true: that is dealt with. */
  onLost: ((leg: Leg, error: NodeJS.ErrnoException | undefined) => boolean) | undefined;
  /** Client side: a copy that may still be connecting is not wanted any more. */
  onAbandon: ((copy: Copy) => void) | undefined;
  onAnswer: ((leg: Leg, bytes: Buffer) => boolean) | undefined;
  /** The doubling threshold of the peer: at half of it the verdict on its message is due. */
  peerThreshold: number;
  /** The peer has answered a hello before: a replica that is pending is worth waiting for. */
  peerKnown = true;

  #archive: Archive | undefined;
  #parsers: [RecordParser | undefined, RecordParser | undefined];
  /** Bytes of an answer still expected on a copy (client side). */
  #answer: [Buffer | undefined, Buffer | undefined] = [undefined, undefined];
  #reading: Copy = PRIMARY;
  #paused = true;
  #unread: Buffer | undefined;
  #ended = false;
  #closed = false;
  #turned = true;
  #lastWrite = 0;
  #unfinished = 0;
  #held: Held | undefined;
  #verdictTimer: NodeJS.Timeout | undefined;
  #endTimer: NodeJS.Timeout | undefined;
  #queryTimer: NodeJS.Timeout | undefined;
  /** Bytes delivered when the last verdict was given, and whether the replica has brought any since. */
  #reportedAt = 0;
  #doubled = true;
  #toldToStop = false;
  #lastError: NodeJS.ErrnoException | undefined;

  constructor(outer: Outer, options: FlowOptions, start: FlowStart) {
    this.outer = outer;
    this.options = options;
    this.framed = start.framed;
    this.peerThreshold = options.threshold;
    const limits = { threshold: options.threshold, framed: start.framed };
    this.tx = new SendMachine(
      limits,
      start.sent === undefined ? undefined : { offset: start.sent, archived: start.archive !== undefined },
    );
    this.rx = new ReceiveMachine({ framedFirst: start.framed[PRIMARY], delivered: start.received ?? 0 });
    this.#archive = start.archive;
    this.#parsers = [
      start.framed[PRIMARY] ? new RecordParser() : undefined,
      start.framed[REPLICA] ? new RecordParser() : undefined,
    ];
    this.#reportedAt = this.rx.delivered;
    if (start.ended || start.fin) this.rx.fin();
    if (start.ended) this.#ended = true;
  }

  // ------------------------------------------------------------------ copies come and go

  /** A copy may carry bytes from now on. `prefix` (a hello or an answer) goes out in the same system call as what follows. */
  open(leg: Leg, prefix?: Buffer): void {
    const { copy } = leg;
    this.legs[copy] = leg;
    if (this.outer.unreferenced) leg.unref();
    if (!this.#paused) leg.resumeReading();
    this.rx.open(copy);
    const replay = this.tx.open(copy);
    const parts: Buffer[] = prefix === undefined ? [] : [prefix];
    if (replay) {
      const archive = this.#archive?.parts ?? [];
      if (this.framed[copy]) {
        let offset = 0;
        for (const bytes of archive) {
          pushRecords(parts, offset, bytes);
          offset += bytes.length;
        }
      } else parts.push(...archive);
      if (this.tx.copies[other(copy)] === 'open') counters.bytesDoubled += this.tx.offset;
    }
    this.#trimArchive();
    if (this.tx.copies[copy] === 'gone') {
      if (parts.length > 0) this.#post(leg, parts, undefined);
      return;
    }
    if (this.framed[copy] && this.tx.copies[other(copy)] === 'gone' && !replay && this.tx.offset > 0)
      parts.push(controlRecord(Control.alone, this.tx.offset));
    if (this.framed[copy] && this.tx.total >= 0) parts.push(controlRecord(Control.end, this.tx.total));
    if (parts.length > 0) this.#post(leg, parts, undefined);
    if (!this.framed[copy] && this.tx.total >= 0) leg.finish(noop);
    this.#release();
  }

  /** The first copy, which has carried the flow so far. */
  adopt(primary: Leg): void {
    this.#paused = primary.stopped;
    this.legs[PRIMARY] = primary;
    this.rx.open(PRIMARY);
  }

  /** The connection that was expected will not come. */
  abandon(copy: Copy): void {
    this.onAbandon?.(copy);
    const leg = this.legs[copy];
    this.legs[copy] = undefined;
    leg?.abort();
    this.#lose(copy);
  }

  #lose(copy: Copy): void {
    this.tx.lose(copy);
    this.rx.lose(copy);
    const rest = this.legs[other(copy)];
    if (rest !== undefined && this.framed[rest.copy] && this.tx.copies[rest.copy] === 'open')
      this.#post(rest, [controlRecord(Control.alone, this.tx.offset)], undefined);
    this.poke();
  }

  /** A copy that was pending is gone (the machines know): see what follows from it. */
  poke(): void {
    this.#trimArchive();
    this.#release();
    if (!this.#closed) this.#checkEnd();
    this.#checkSend();
  }

  legLost(leg: Leg, error: NodeJS.ErrnoException | undefined): void {
    if (this.legs[leg.copy] !== leg) return;
    this.legs[leg.copy] = undefined;
    if (this.onLost?.(leg, error)) return;
    if (error !== undefined) this.#lastError = error;
    if (this.#closed) return this.#settled();
    counters.copiesFailed++;
    if (channels.failover.hasSubscribers)
      channels.failover.publish({
        socket: this.outer,
        copy: leg.copy === PRIMARY ? 'primary' : 'replica',
        error,
      });
    this.#lose(leg.copy);
  }

  /** Nothing can be sent any more, and the stream from the peer is not over: one error. */
  #checkSend(): void {
    if (this.#closed || this.#ended || this.tx.state !== 'ENDED') return;
    this.fail(this.#lastError);
  }

  fail(error: Error | undefined): void {
    if (this.#closed) return;
    this.outer.destroy(
      error ??
        new RepnetError('ERR_REPNET_COPIES_FAILED', 'Both connections of the flow ended before the flow did'),
    );
  }

  // ------------------------------------------------------------------ sending

  /** Sends `bytes`; `done` when the first copy has taken them. */
  write(bytes: Buffer, done: Callback): void {
    this.outer.touch();
    if (bytes.length === 0) return done();
    this.#startMessage();
    this.#push(bytes, done);
  }

  /** A message is new after a turn (the peer spoke since, and nothing of ours was under way) or a lull. */
  #startMessage(): void {
    const now = performance.now();
    if (this.#turned || now - this.#lastWrite > this.options.lull) {
      this.#turned = false;
      if (this.tx.offset > this.tx.message) {
        if (this.tx.newMessage()) counters.doublingResumed++;
      }
    }
    this.#lastWrite = now;
  }

  #push(bytes: Buffer, done: Callback): void {
    const { tx } = this;
    if (tx.state === 'ONE_CONN' && tx.copies[tx.chosen] === 'pending') {
      // The one open copy is lost and the other not yet there: the application waits, nothing piles up.
      this.#held = { bytes, done };
      return;
    }
    if (tx.state === 'DUP_CONN') {
      const room = this.#room(bytes.length);
      if (room >= bytes.length) return this.#both(bytes, done);
      if (room > 0) {
        this.#both(bytes.subarray(0, room), ignoreSuccess(done));
        bytes = bytes.subarray(room);
      }
      if (!this.#choose()) {
        this.#hold(bytes, done);
        return;
      }
      if ((tx.state as string) === 'DUP_CONN') return this.#push(bytes, done);
    }
    const offset = tx.offset;
    const route = tx.route(bytes.length);
    if (route.archive) {
      this.#archive ??= new Archive();
      if (!this.#archive.push(bytes)) tx.forgo();
    }
    if (!tx.archived && this.#archive !== undefined) {
      this.#trimArchive();
      counters.chosenEarly++;
    }
    if (route.copies === 0) return done(this.#lastError ?? notConnected());
    // What is archived is not lost with the copy that failed under it.
    const settled: Callback = (error) => done(error && this.tx.archived ? null : error);
    this.#sendOn(route.copies === 1 ? PRIMARY : REPLICA, offset, bytes, tx.archived ? settled : done);
  }

  #trimArchive(): void {
    if (this.tx.archived) return;
    this.#archive?.drop();
    this.#archive = undefined;
  }

  /** What was written so far, if `tx.archived`; it is the caller's to drop. */
  takeArchive(): Archive | undefined {
    const archive = this.#archive;
    this.#archive = undefined;
    return archive;
  }

  #room(wanted: number): number {
    const room = this.tx.room;
    if (room === 0) return 0;
    const replica = this.legs[REPLICA] as Leg;
    if (replica.backlog > 2 * this.options.threshold) {
      this.tx.verdict = PRIMARY;
      return 0;
    }
    if (!budget.takeBytes(Math.min(room, wanted))) {
      counters.overBudget++;
      this.tx.verdict = PRIMARY;
      return 0;
    }
    return room;
  }

  /** At the threshold: one copy carries the rest. False: the receiver's verdict is awaited. */
  #choose(): boolean {
    const { tx } = this;
    const primary = this.legs[PRIMARY];
    const replica = this.legs[REPLICA];
    if (tx.verdict === undefined && primary !== undefined && replica !== undefined && !tx.stopped) {
      if (this.#verdictTimer === undefined) return false;
      tx.extend();
      return true;
    }
    counters.doublingStopped++;
    tx.choose(tx.verdict ?? PRIMARY);
    return true;
  }

  #hold(bytes: Buffer, done: Callback): void {
    this.#held = { bytes, done };
    this.#verdictTimer = setTimeout(() => this.#release(), VERDICT_TIMEOUT);
  }

  #release(): void {
    const held = this.#held;
    if (held === undefined) return;
    this.#held = undefined;
    this.#push(held.bytes, held.done);
    clearTimeout(this.#verdictTimer);
    this.#verdictTimer = undefined;
  }

  #both(bytes: Buffer, done: Callback): void {
    const { tx } = this;
    const offset = tx.offset;
    tx.route(bytes.length);
    counters.bytesDoubled += bytes.length;
    const first = firstOf(done);
    const replica = this.legs[REPLICA];
    // Should the first copy fail under its write, the record that says so follows these bytes on the second. They are a
    // copy, since the application may use its buffer again once either connection has it.
    if (replica === undefined) first.callback(this.#lastError ?? notConnected());
    else this.#post(replica, copyRecords(offset, bytes), first.callback);
    this.#sendOn(PRIMARY, offset, bytes, first.callback);
    first.begun(2);
  }

  #sendOn(copy: Copy, offset: number, bytes: Buffer, done: Callback): void {
    const leg = this.legs[copy];
    if (leg === undefined) return done(this.#lastError ?? notConnected());
    if (this.framed[copy]) {
      const parts: Buffer[] = [];
      pushRecords(parts, offset, bytes);
      this.#transmit(leg, parts, done);
    } else this.#transmit(leg, [bytes], done);
  }

  /** At the end of this turn of the event loop: control records, and what the other copy carries at once. */
  #post(leg: Leg, parts: readonly Buffer[], done: Callback | undefined): void {
    leg.post(parts, this.#sent(leg, parts, done));
  }

  /** Now. */
  #transmit(leg: Leg, parts: Buffer[], done: Callback | undefined): void {
    leg.send(parts, this.#sent(leg, parts, done));
    // The plain copy cannot skip: one that is stuck while the other moves is given up rather than fed for ever.
    if (leg.copy === PRIMARY && leg.backlog > this.#backlogLimit && this.tx.copies[REPLICA] === 'open')
      if ((this.legs[REPLICA]?.backlog ?? Number.POSITIVE_INFINITY) === 0 && this.tx.state === 'DUP_CONN') {
        counters.copiesFailed++;
        this.tx.choose(REPLICA);
      }
  }

  #sent(leg: Leg, parts: readonly Buffer[], done: Callback | undefined): Callback {
    let size = 0;
    for (const part of parts) size += part.length;
    leg.backlog += size;
    this.#unfinished++;
    return (error) => {
      leg.backlog -= size;
      this.#unfinished--;
      if (error) {
        leg.destroy(error);
        done?.(error);
        return;
      }
      if (done !== undefined) {
        this.outer.touch();
        done();
      }
    };
  }

  get #backlogLimit(): number {
    return Math.max(1024 * 1024, 4 * this.options.threshold);
  }

  /** The application has ended its stream: FIN on a plain copy, the total on a framed one. */
  end(done: Callback): void {
    this.tx.end();
    // A copy that is open now, or comes later, carries the end if the one that was open failed under it.
    const first = firstOf((error) => done(this.tx.state === 'ENDED' ? error : null));
    let sent = 0;
    for (const copy of [PRIMARY, REPLICA] as const) {
      const leg = this.legs[copy];
      if (leg === undefined || this.tx.copies[copy] === 'pending') continue;
      if (this.framed[copy]) {
        sent++;
        this.#post(leg, [controlRecord(Control.end, this.tx.total)], first.callback);
      } else if (this.tx.copies[copy] === 'open') {
        sent++;
        leg.finish(first.callback);
      }
    }
    if (sent > 0) first.begun(sent);
    else done();
  }

  // ------------------------------------------------------------------ receiving

  /** Client: an answer precedes the records of this copy. */
  expectAnswer(leg: Leg): void {
    this.#answer[leg.copy] = Buffer.alloc(0);
    leg.resumeReading();
  }

  legData(leg: Leg, chunk: Buffer): boolean {
    const { copy } = leg;
    if (this.#answer[copy] !== undefined) {
      chunk = Buffer.concat([this.#answer[copy], chunk]);
      if (chunk.length < ANSWER_BYTES) {
        const known = decodeAnswerPrefix(chunk);
        this.#answer[copy] = chunk;
        if (!known) this.onAnswer?.(leg, chunk);
        return true;
      }
      this.#answer[copy] = undefined;
      if (this.onAnswer?.(leg, chunk) === false) return true;
      if (chunk.length === ANSWER_BYTES) return !this.#paused;
      chunk = chunk.subarray(ANSWER_BYTES);
    }
    this.outer.touch();
    const parser = this.#parsers[copy];
    if (parser === undefined) {
      const skip = this.rx.acceptPlain(chunk.length);
      const fresh = chunk.length - skip;
      counters.bytesDuplicate += skip;
      if (fresh > 0) {
        counters.bytesWonByPrimary += fresh;
        this.#deliver(skip === 0 ? chunk : chunk.subarray(skip));
      }
    } else {
      this.#reading = copy;
      try {
        parser.feed(chunk, this);
      } catch (error) {
        leg.destroy(error as Error);
        return true;
      }
      if (parser.midRecord) this.rx.announce(parser.announced);
    }
    return this.#closed || !(this.#paused || (this.rx.reach[copy] > this.rx.delivered && this.#crowded));
  }

  /**
   * Enough is held that lies beyond a hole which only the first copy can fill: the second is read on when it has. What the
   * sender doubles in messages to come is for it to decide, so its bytes wait in the kernel rather than break the flow.
   */
  get #crowded(): boolean {
    return this.rx.earlyBytes > this.#earlyLimit;
  }

  onData(offset: number, bytes: Buffer): void {
    const copy = this.#reading;
    const { rx } = this;
    const skip = rx.acceptRecord(copy, offset, bytes.length);
    this.#doubled = true;
    if (skip === -1) {
      rx.keepEarly(copy, offset, bytes);
      this.#checkEnd();
      return;
    }
    counters.bytesDuplicate += skip;
    if (skip === bytes.length) {
      if (!this.#toldToStop && rx.delivered - offset - skip > STOP_LAG) this.#tellToStop(copy);
      return;
    }
    const fresh = bytes.length - skip;
    if (this.#ended && !this.#closed) {
      // A plain FIN was taken for the end before the replica came that knows better.
      this.fail(truncated(rx.delivered - fresh, rx.total));
      return;
    }
    if (copy === PRIMARY) counters.bytesWonByPrimary += fresh;
    else counters.bytesWonByReplica += fresh;
    this.#deliver(skip === 0 ? bytes : bytes.subarray(skip));
  }

  /** Bytes ahead of the stream that are kept: what the peer may double, but not whatever it says it may. */
  get #earlyLimit(): number {
    const own = this.options.threshold;
    return 2 * Math.max(own, Math.min(this.peerThreshold, 2 * own));
  }

  #tellToStop(copy: Copy): void {
    const leg = this.legs[copy];
    this.#toldToStop = true;
    if (leg !== undefined) this.#post(leg, [controlRecord(Control.stop, this.rx.delivered)], undefined);
  }

  onControl(type: number, offset: number, extra: number): void {
    const copy = this.#reading;
    const { rx, tx } = this;
    switch (type) {
      case Control.stop:
        if (offset > tx.message) {
          tx.stop(copy);
          counters.doublingStopped++;
          this.#release();
        }
        return;
      case Control.resume:
        tx.stopped = false;
        return;
      case Control.report:
        tx.report(offset, extra, VERDICT_SLACK);
        if (tx.verdict !== undefined) this.#release();
        return;
      case Control.end:
        if ((rx.total >= 0 && rx.total !== offset) || offset < rx.delivered)
          throw new RepnetError('ERR_REPNET_PROTOCOL', 'The peer declared two different totals');
        rx.end(copy, offset);
        if (this.#closed) this.#letGo(this.legs[copy]);
        else this.#checkEnd();
        return;
      case Control.alone:
        rx.alone = offset;
        rx.lost = other(copy);
        rx.announce(offset);
        this.#checkEnd();
        return;
      case Control.query: {
        if (tx.total >= 0 || tx.copies[copy] !== 'open') return;
        tx.lose(other(copy));
        const leg = this.legs[copy];
        if (leg !== undefined) this.#post(leg, [controlRecord(Control.alone, tx.offset)], undefined);
        this.#release();
        return;
      }
      case Control.reset:
        this.#lastError = connectionReset();
        this.fail(this.#lastError);
        return;
    }
  }

  #deliver(bytes: Buffer): void {
    if (this.#closed || this.#ended) return;
    if (this.#unfinished === 0) this.#turned = true;
    if (!this.outer.deliver(bytes)) this.#paused = true;
    const { rx } = this;
    if (rx.early.length > 0) {
      for (let next = rx.takeEarly(); next !== undefined; next = rx.takeEarly()) {
        counters.bytesWonByReplica += next.length;
        if (!this.outer.deliver(next)) this.#paused = true;
      }
      if (!this.#paused && !this.#crowded) for (const leg of this.legs) leg?.resumeReading();
    }
    if (this.#doubled && rx.delivered - this.#reportedAt >= this.peerThreshold / 2) this.#report();
    if (rx.total >= 0 || rx.done[PRIMARY]) this.#checkEnd();
  }

  /** Tells the sender which copy is ahead, in time for its choice at the threshold, as long as it doubles. */
  #report(): void {
    this.#reportedAt = this.rx.delivered;
    this.#doubled = false;
    this.#toldToStop = false;
    // Both copies may have become readable in this turn of the event loop: judge when both have been read.
    setImmediate(() => {
      const leg = this.legs[REPLICA];
      if (leg === undefined || this.#closed || this.rx.copies[REPLICA] !== 'open') return;

      this.#post(leg, [controlRecord(Control.report, this.rx.delivered, this.rx.reach[PRIMARY])], undefined);
    });
  }

  /** The application is not reading: what came with the hello is kept until it does. */
  pause(leg: Leg, chunk: Buffer | undefined): void {
    this.#paused = true;
    this.#unread = chunk;
    leg.stopped = true;
  }

  /** The application has read: go on reading both copies. */
  resume(): void {
    this.#paused = false;
    const unread = this.#unread;
    if (unread !== undefined) {
      this.#unread = undefined;
      const replica = this.legs[REPLICA];
      if (replica !== undefined) this.legData(replica, unread);
    }
    for (const leg of this.legs)
      if (leg !== undefined && !(this.#crowded && this.rx.reach[leg.copy] > this.rx.delivered))
        leg.resumeReading();
  }

  legFin(leg: Leg): void {
    const { copy } = leg;
    if (this.framed[copy]) {
      // Framed copies are never half-closed: the peer has closed it.
      this.legs[copy] = undefined;
      leg.close();
      if (this.onLost?.(leg, undefined)) return;
      if (this.#closed) return this.#settled();
      // Both streams are declared on it: it has done its part, whatever the first copy still brings.
      if (this.rx.done[copy] && this.tx.total >= 0) return this.#checkEnd();
      if (!this.rx.done[copy]) counters.copiesFailed++;
      this.#lose(copy);
      return;
    }
    this.rx.fin();
    if (this.#closed) {
      this.#letGo(leg);
      return;
    }
    if (this.rx.total < 0) this.#query();
    this.#checkEnd();
  }

  /**
   * A bare FIN: the sender knows whether it meant it, and if not, that this copy is dead. If it did, word of it is on the
   * way on the second copy already, so the question waits a little.
   */
  #query(): void {
    this.#queryTimer = setTimeout(() => {
      const replica = this.legs[REPLICA];
      if (this.rx.total >= 0 || replica === undefined || this.rx.copies[REPLICA] !== 'open') return;
      this.#post(replica, [controlRecord(Control.query, this.rx.plain)], undefined);
    }, QUERY_DELAY);
    this.#queryTimer.unref();
  }

  #checkEnd(): void {
    if (this.#ended || this.#closed) return;
    switch (this.rx.verdict()) {
      case 'end':
        clearTimeout(this.#endTimer);
        this.#ended = true;
        this.outer.deliver(null);
        return;
      case 'truncated':
        this.fail(this.#lastError ?? truncated(this.rx.delivered, this.rx.total));
        return;
      case 'wait':
        if (this.rx.copies[REPLICA] === 'pending' && !this.peerKnown) {
          this.abandon(REPLICA);
          return;
        }
        if (this.#endTimer === undefined) {
          this.#endTimer = patientTimeout(() => {
            this.#endTimer = undefined;
            if (this.#ended || this.#closed || this.rx.verdict() !== 'wait') return;
            counters.copiesFailed++;
            this.abandon(this.rx.suspect);
          }, this.options.pairTimeout);
        }
        return;
    }
  }

  // ------------------------------------------------------------------ closing

  get bytesRead(): number {
    return this.rx.delivered;
  }

  /** Bytes given to the system and not yet taken. */
  get backlog(): number {
    return (this.legs[PRIMARY]?.backlog ?? 0) + (this.legs[REPLICA]?.backlog ?? 0);
  }

  get closed(): boolean {
    return this.#closed;
  }

  /**
   * The application's socket is destroyed. A copy on which the peer's end has not been read yet is drained first: closing
   * it would send RST and take bytes of ours with it that the peer may need.
   */
  close(reset: boolean): void {
    if (this.#closed) return;
    this.#closed = true;
    clearTimeout(this.#endTimer);
    clearTimeout(this.#queryTimer);
    clearTimeout(this.#verdictTimer);
    const orderly = this.#ended && this.tx.total >= 0;
    const held = this.#held;
    this.#held = undefined;
    this.#archive?.drop();
    this.#archive = undefined;
    for (const copy of [PRIMARY, REPLICA] as const) {
      this.onAbandon?.(copy);
      const leg = this.legs[copy];
      if (leg === undefined) continue;
      if (this.tx.copies[copy] === 'pending') {
        leg.abort();
        this.legs[copy] = undefined;
      } else if (reset) {
        if (this.framed[copy]) this.#post(leg, [controlRecord(Control.reset, 0)], undefined);
        this.legs[copy] = undefined;
        leg.abort();
      } else if (!orderly) {
        if (this.framed[copy] && this.tx.total < 0)
          this.#post(leg, [controlRecord(Control.end, this.tx.offset)], undefined);
        this.#letGo(leg);
      } else {
        if (this.rx.done[copy]) this.#letGo(leg);
        else if (!this.framed[copy] && this.tx.copies[copy] !== 'open') {
          // It could not carry our end, so the peer will not end it either.
          this.legs[copy] = undefined;
          leg.abort();
        } else {
          leg.unref();
          leg.resumeReading();
        }
      }
    }
    held?.done(notConnected());
    if (channels.finished.hasSubscribers)
      channels.finished.publish({
        socket: this.outer,
        bytesRead: this.rx.delivered,
        bytesWritten: this.tx.offset,
        wonByPrimary: this.rx.won[PRIMARY],
        wonByReplica: this.rx.won[REPLICA],
      });
    if (this.legs[PRIMARY] === undefined && this.legs[REPLICA] === undefined) return this.#settled();
    // As the kernel does for a plain connection, what the peer has not taken yet is kept for it; it may be slow to read.
    const carrying = ([PRIMARY, REPLICA] as const).some(
      (copy) => this.legs[copy] && this.tx.copies[copy] === 'open',
    );
    const over = () => {
      for (const copy of [PRIMARY, REPLICA] as const) {
        const leg = this.legs[copy];
        this.legs[copy] = undefined;
        // One that carries our end is not reset: what the peer has not read yet would be lost.
        if (this.options.loser === 'rst' && this.tx.copies[copy] !== 'open') leg?.abort();
        else leg?.close();
      }
      this.#settled();
    };
    this.#linger = startLinger(over, this.options.pairTimeout, carrying);
  }

  #linger: Linger | undefined;

  /**
   * The peer's stream has been read to its end on this copy, and ours is written. On a framed copy the peer may still send
   * word of what it receives; closing on that unread would be a reset and take our last bytes with it, so the copy is
   * ended and read until the peer ends it too.
   */
  #letGo(leg: Leg | undefined): void {
    if (leg === undefined || leg.ending) return;
    if (this.framed[leg.copy]) {
      leg.ending = true;
      leg.unref();
      leg.resumeReading();
      leg.finish(noop);
      return;
    }
    this.legs[leg.copy] = undefined;
    leg.close();
    if (this.legs[PRIMARY] === undefined && this.legs[REPLICA] === undefined) this.#settled();
  }

  #settled(): void {
    if (this.legs[PRIMARY] !== undefined || this.legs[REPLICA] !== undefined) return;
    if (this.#linger !== undefined) {
      endLinger(this.#linger);
      this.#linger = undefined;
    }
    const closed = this.onClosed;
    this.onClosed = undefined;
    closed?.();
  }
}

function noop(): void {}

function truncated(delivered: number, total: number): RepnetError {
  const of = total >= 0 ? ` of ${total}` : '';
  return new RepnetError('ERR_REPNET_TRUNCATED', `The stream broke off after ${delivered} bytes${of}`);
}

function notConnected(): NodeJS.ErrnoException {
  return Object.assign(new Error('The connection is closed'), { code: 'EPIPE' });
}

export function connectionReset(): NodeJS.ErrnoException {
  return Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET', errno: -104, syscall: 'read' });
}

/**
 * Calls back at the first success, or when all that were begun have failed, but not before `begun`: a write may succeed at
 * once and the application's next one must not reach a copy before this one has.
 */
function firstOf(done: Callback): { callback: Callback; begun: (writes: number) => void } {
  let writes = Number.POSITIVE_INFINITY;
  let outcome: { error: Error | null | undefined } | undefined;
  let failures = 0;
  let last: Error | undefined;
  return {
    callback: (error) => {
      if (outcome !== undefined) return;
      if (error && ++failures < writes) {
        last = error;
        return;
      }
      outcome = { error };
      if (writes !== Number.POSITIVE_INFINITY) done(error);
    },
    begun: (count) => {
      writes = count;
      if (outcome === undefined && failures >= count) outcome = { error: last };
      if (outcome !== undefined) done(outcome.error);
    },
  };
}

function ignoreSuccess(done: Callback): Callback {
  return (error) => {
    if (error) done(error);
  };
}

function decodeAnswerPrefix(chunk: Buffer): boolean {
  const probe = Buffer.alloc(ANSWER_BYTES);
  chunk.copy(probe);
  return chunk.length < 8 || decodeAnswer(probe) !== undefined;
}
