/**
 * The receiving side of a flow: delivers the bytes of a copy that machine.ts finds new, reports to
 * the peer, and finds the end of the stream.
 */
import { protocolError, systemError, truncatedError } from '../errors.js';
import { ownCopy } from '../memory/archive.js';
import { counters } from '../stats.js';
import {
  ANSWER_BYTES,
  Record as Control,
  controlRecord,
  mayBeAnswer,
  RecordParser,
  type RecordSink,
} from '../wire.js';
import type { Leg } from './leg.js';
import { type Copy, PRIMARY, REPLICA, ReceiveMachine } from './machine.js';
import type { ReceiverHost } from './roles.js';
import { patientTimeout, wordTimeout } from './waits.js';

/**
 * Milliseconds from a bare FIN to the question about it on the second copy, where word of it
 * usually comes by itself.
 */
const QUERY_DELAY = 5;
/**
 * Least bytes between two reports, whatever the peer's threshold: a report is shorter than what it
 * covers.
 */
const REPORT_INTERVAL = 64;
/** Bytes by which the second copy trails before it is told to stop. */
const STOP_LAG = 32 * 1024;

const NOTHING = Buffer.alloc(0);

export interface ReceiverStart {
  /** Bytes that the application has read of the first copy. */
  received: number;
  /** The first copy has been read to its end, and the application been told. */
  ended: boolean;
  /** The first copy has ended, and the application not been told. */
  fin: boolean;
}

export class Receiver implements RecordSink {
  readonly rx: ReceiveMachine;
  /** The application is behind, or has not begun to read. */
  paused = true;
  /** The application has been told of the end. */
  ended: boolean;
  /** The flow is closed, and the peer has sent bytes that the application was not given. */
  leftUnread = false;
  readonly #host: ReceiverHost;
  /** Parses the records of the second copy. */
  readonly #parser = new RecordParser();
  /** Client: the part of the answer that has come; undefined once the answer is whole. */
  #answer: Buffer | undefined;
  /** Bytes that came with a hello or an answer while the application did not read. */
  #unread: { leg: Leg; chunk: Buffer }[] | undefined;
  #endTimer: NodeJS.Timeout | undefined;
  #queryTimer: NodeJS.Timeout | undefined;
  /** Bytes delivered at the last report, and whether the second copy has brought any since. */
  #reportedAt: number;
  #doubled = true;
  #toldToStop = false;
  /** A report is on its way to the system, and another is due. */
  #reporting = false;
  #reportDue = false;
  /** The sender knows that nothing was lost with the copy that it gave up. */
  #confirmed = false;
  /** The second copy has brought bytes first. */
  #copyWon = false;

  constructor(host: ReceiverHost, start: ReceiverStart) {
    this.#host = host;
    this.rx = new ReceiveMachine(start.received);
    this.#reportedAt = start.received;
    this.ended = start.ended;
    this.#won(PRIMARY, start.received);
    if (start.ended || start.fin) this.rx.fin();
  }

  /** The copy brings what the peer sends, and takes questions. */
  open(copy: Copy): void {
    this.rx.open(copy);
    // A copy that can be asked from now on has time from now on.
    clearTimeout(this.#endTimer);
    this.#endTimer = undefined;
    this.#query();
  }

  /** Client: an answer precedes the records of the second connection. */
  expectAnswer(replica: Leg): void {
    this.#answer = NOTHING;
    replica.resumeReading();
  }

  data(leg: Leg, chunk: Buffer): boolean {
    const { copy } = leg;
    if (copy === PRIMARY) this.#plain(chunk);
    else if (this.#answer !== undefined) return this.#answerData(leg, this.#answer, chunk);
    else {
      try {
        this.#parser.feed(chunk, this);
      } catch (error) {
        leg.destroy(error as Error);
        return true;
      }
      if (this.#parser.midRecord) this.rx.announce(this.#parser.announced);
    }
    return this.#host.closed || !(this.paused || (copy === REPLICA && this.#isCrowded));
  }

  #plain(chunk: Buffer): void {
    const skip = this.rx.acceptPlain(chunk.length);
    const fresh = chunk.length - skip;
    counters.bytesDuplicate += skip;
    if (fresh === 0) return;
    this.#won(PRIMARY, fresh);
    this.#deliver(skip === 0 ? chunk : chunk.subarray(skip));
  }

  /** The server answers: `begun` came before `chunk`. */
  #answerData(leg: Leg, begun: Buffer, chunk: Buffer): boolean {
    const bytes = begun.length === 0 ? chunk : Buffer.concat([begun, chunk]);
    if (bytes.length < ANSWER_BYTES) {
      this.#answer = ownCopy(bytes);
      if (!mayBeAnswer(bytes)) this.#host.client?.answered(leg, bytes);
      return true;
    }
    this.#answer = undefined;
    if (this.#host.client?.answered(leg, bytes) === false) return true;
    if (bytes.length === ANSWER_BYTES) return !this.paused;
    const records = bytes.subarray(ANSWER_BYTES);
    if (!this.paused || this.#host.closed) return this.data(leg, records);
    // The answer is read even while the application reads nothing; the bytes after it are not due
    // yet.
    this.pause(leg, records);
    return false;
  }

  /**
   * Whether enough bytes of the second copy are held beyond a hole, which only the first copy can
   * fill. Their number follows the peer's threshold, within twice our own; further bytes wait in
   * the kernel.
   */
  get #isCrowded(): boolean {
    const own = this.#host.options.threshold;
    return this.rx.earlyBytes > 2 * Math.max(own, Math.min(this.#host.peerThreshold, 2 * own));
  }

  /** @throws RepnetError ERR_REPNET_PROTOCOL, and nothing else. */
  onData(offset: number, bytes: Buffer): void {
    const { total } = this.rx;
    if (total >= 0 && offset + bytes.length > total) throw protocolError('data beyond the total it declared');
    try {
      this.#data(offset, bytes);
    } catch (error) {
      throwLater(error);
    }
  }

  #data(offset: number, bytes: Buffer): void {
    const { rx } = this;
    const skip = rx.acceptRecord(offset, bytes.length);
    this.#doubled = true;
    if (skip === -1) {
      if (this.#host.closed) {
        this.leftUnread = true;
        return;
      }
      if (this.ended) return this.#notTheEnd(offset + bytes.length);
      rx.keepEarly(offset, bytes);
      this.checkEnd();
      return;
    }
    counters.bytesDuplicate += skip;
    if (skip === bytes.length) {
      const behind = rx.delivered - offset - skip > STOP_LAG;
      if (behind && !this.#toldToStop) this.#tellToStop();
      return;
    }
    const fresh = bytes.length - skip;
    if (this.ended && !this.#host.closed) return this.#notTheEnd(rx.total, rx.delivered - fresh);
    this.#won(REPLICA, fresh);
    this.#deliver(skip === 0 ? bytes : bytes.subarray(skip));
  }

  /** The application has seen the end at a plain FIN, and the second copy has more. */
  #notTheEnd(total: number, delivered = this.rx.delivered): void {
    this.#host.fail(truncatedError(delivered, total));
  }

  #tellToStop(): void {
    const leg = this.#host.legs[REPLICA];
    this.#toldToStop = true;
    if (leg !== undefined)
      this.#host.sender.post(leg, [controlRecord(Control.stop, this.rx.delivered)], undefined);
  }

  /** @throws RepnetError ERR_REPNET_PROTOCOL, and nothing else. */
  onControl(type: number, offset: number, extra: number): void {
    const { total, highest } = this.rx;
    if (type === Control.end && ((total >= 0 && total !== offset) || offset < highest))
      throw protocolError('two different totals, or one below what it had sent');
    const received = type === Control.stop || type === Control.report;
    if (received && Math.max(offset, extra) > this.#host.sender.tx.offset)
      throw protocolError('that it has received more than was sent');
    try {
      this.#control(type, offset, extra);
    } catch (error) {
      throwLater(error);
    }
  }

  #control(type: number, offset: number, extra: number): void {
    const { rx } = this;
    const { sender } = this.#host;
    switch (type) {
      case Control.stop:
        return sender.stop(offset);
      case Control.report:
        return sender.report(offset, extra);
      case Control.query:
        return sender.query();
      case Control.end:
        rx.end(offset);
        if (this.#host.closed) this.#host.peerDone(this.#host.legs[REPLICA]);
        else if (this.ended && offset > rx.delivered) this.#notTheEnd(offset);
        else this.checkEnd();
        return;
      case Control.alone:
        rx.alone = offset;
        rx.announce(offset);
        sender.firstGivenUp();
        this.#dropFirst();
        this.#confirm();
        this.checkEnd();
        return;
      case Control.reset:
        this.#host.fail(systemError('ECONNRESET', 'read'));
        return;
    }
  }

  #won(copy: Copy, bytes: number): void {
    if (this.#host.receives === 'request') {
      if (copy === PRIMARY) counters.requestBytesWonByPrimary += bytes;
      else counters.requestBytesWonByReplica += bytes;
      return;
    }
    const { rx } = this;
    if (rx.delivered === bytes) this.#host.client?.firstBytes();
    if (copy === PRIMARY) counters.replyBytesWonByPrimary += bytes;
    else {
      counters.replyBytesWonByReplica += bytes;
      if (!this.#copyWon) counters.copiesWon++;
      this.#copyWon = true;
    }
  }

  #deliver(bytes: Buffer): void {
    if (this.#host.closed) this.leftUnread = true;
    if (this.#host.closed || this.ended) return;
    this.#host.sender.turn();
    this.#give(bytes);
    const { rx } = this;
    if (rx.early.length > 0) {
      for (let next = rx.takeEarly(); next !== undefined; next = rx.takeEarly()) {
        this.#won(REPLICA, next.length);
        this.#give(next);
      }
      this.#readOn();
    }
    const interval = Math.max(REPORT_INTERVAL, this.#host.peerThreshold / 2);
    if (this.#doubled && rx.delivered - this.#reportedAt >= interval) this.#report();
    if (rx.alone >= 0) {
      this.#dropFirst();
      this.#confirm();
    }
    if (rx.total >= 0 || rx.done[PRIMARY]) this.checkEnd();
  }

  /** Gives bytes to the application. If it throws, the receiver goes on as if it had not. */
  #give(bytes: Buffer): void {
    this.#host.outer.touch();
    try {
      if (!this.#host.outer.deliver(bytes)) this.paused = true;
    } catch (error) {
      throwLater(error);
    }
  }

  /**
   * Client: the server has no first connection, or none any more. Bytes under way on it would begin
   * a new flow once the server has forgotten this one. It is kept for bytes that the second lacks.
   */
  #dropFirst(): void {
    const { rx } = this;
    const { client, closed, sender } = this.#host;
    if (client === undefined || !sender.tx.hasAll(REPLICA)) return;
    // In a closed flow nobody misses bytes.
    if (closed || rx.alone <= rx.delivered) this.#host.forsakeFirst();
  }

  /**
   * Reports to the sender which copy is ahead, in time for its choice at the threshold, as long as
   * it doubles. A peer that does not read its reports has one under way, and gets a fresh one when
   * it reads.
   */
  #report(): void {
    this.#reportedAt = this.rx.delivered;
    this.#doubled = false;
    this.#reportDue = true;
    if (this.#reporting) return;
    this.#reporting = true;
    // Both copies may have become readable in this turn of the event loop: judge when both are
    // read.
    setImmediate(() => this.#tellReport());
  }

  #tellReport(): void {
    const { delivered, reach, copies } = this.rx;
    const leg = this.#host.legs[REPLICA];
    this.#toldToStop = false;
    this.#reporting =
      this.#reportDue && leg !== undefined && copies[REPLICA] === 'open' && !this.#host.closed;
    this.#reportDue = false;
    if (this.#reporting && leg !== undefined)
      this.#host.sender.tell(leg, controlRecord(Control.report, delivered, reach[PRIMARY]), () =>
        this.#tellReport(),
      );
  }

  /**
   * Confirms to the sender, which gave up a copy, that all bytes have come that only that copy
   * carried.
   */
  #confirm(): void {
    const { delivered, alone, reach } = this.rx;
    const second = this.#host.legs[REPLICA];
    if (this.#confirmed || alone > delivered || second === undefined || this.#host.closed) return;
    this.#confirmed = true;
    this.#host.sender.post(second, [controlRecord(Control.report, delivered, reach[PRIMARY])], undefined);
  }

  /**
   * The application does not read: keeps bytes that came with the hello or the answer until it
   * does.
   */
  pause(leg: Leg, chunk: Buffer | undefined): void {
    this.paused = true;
    if (chunk !== undefined) {
      this.#unread ??= [];
      this.#unread.push({ leg, chunk });
    }
    leg.stopped = true;
  }

  /** The application has read: go on reading both copies. */
  resume(): void {
    this.paused = false;
    const unread = this.#unread;
    if (unread !== undefined) {
      this.#unread = undefined;
      for (const { leg, chunk } of unread) if (this.#host.legs[leg.copy] === leg) this.data(leg, chunk);
      if (this.paused) return;
    }
    this.#readOn();
  }

  #readOn(): void {
    if (this.paused) return;
    for (const leg of this.#host.legs)
      if (leg !== undefined && !(leg.copy === REPLICA && this.#isCrowded)) leg.resumeReading();
  }

  /** A bare FIN on the first copy of a flow that is not closed. */
  fin(): void {
    this.rx.fin();
    this.#query();
    this.checkEnd();
  }

  /**
   * Asks the sender whether the end of the first copy, by a bare FIN or a failure, is the end of
   * the stream: if not, the copy is dead. A sender that was closed says nothing before it is asked.
   * Word of the end usually comes on the second copy by itself, so the question waits a little; it
   * also waits for a second copy that is still to come.
   */
  #query(): void {
    if (!this.rx.asks || this.ended || this.#host.closed) return;
    if (this.#queryTimer !== undefined) return;
    const timer = setTimeout(() => {
      this.#queryTimer = undefined;
      const replica = this.#host.legs[REPLICA];
      if (this.rx.asks && replica !== undefined)
        this.#host.sender.post(replica, [controlRecord(Control.query, this.rx.plain)], undefined);
      this.checkEnd();
    }, QUERY_DELAY);
    this.#queryTimer = this.#keeping(timer);
  }

  /**
   * Keeps the process alive while a timer runs, unless the socket is unreferenced: a connection
   * that is read to its end does not.
   */
  #keeping(timer: NodeJS.Timeout): NodeJS.Timeout {
    return this.#host.outer.unreferenced ? timer.unref() : timer.ref();
  }

  /** The waits for the end. */
  *waits(): Iterable<NodeJS.Timeout> {
    for (const timer of [this.#endTimer, this.#queryTimer]) if (timer !== undefined) yield timer;
  }

  checkEnd(): void {
    if (this.ended || this.#host.closed) return;
    switch (this.rx.verdict()) {
      case 'end':
        clearTimeout(this.#endTimer);
        this.ended = true;
        this.#host.outer.touch();
        this.#host.outer.deliver(null);
        return;
      case 'truncated':
        this.#host.fail(this.#host.lastError ?? this.#cause());
        return;
      case 'wait':
        if (this.rx.copies[REPLICA] === 'pending' && !this.#host.peerKnown) {
          this.#host.abandon(REPLICA);
          return;
        }
        // Word of the end usually comes before the question is due; the wait begins then.
        if (this.#endTimer === undefined && this.#queryTimer === undefined) {
          const timer = patientTimeout(() => {
            if (this.#endTimer !== timer) return;
            this.#endTimer = undefined;
            if (this.ended || this.#host.closed || this.rx.verdict() !== 'wait') return;
            counters.copiesFailed++;
            if (!this.rx.endsBeside) return this.#host.abandon(this.rx.suspect);
            // The second copy may be slow in this direction alone: it stays in use for the other.
            this.rx.lose(REPLICA);
            this.checkEnd();
          }, this.#endPatience);
          this.#endTimer = this.#keeping(timer);
        }
        return;
    }
  }

  /**
   * Milliseconds to wait for the other copy in 'wait'. A peer that has both connections may be
   * busy, and one that has sent no byte may still answer: neither's silence is taken for the end of
   * the stream soon.
   */
  get #endPatience(): number {
    const { pairTimeout } = this.#host.options;
    const mayAnswer = this.#host.legs[REPLICA] !== undefined && this.rx.copies[REPLICA] === 'pending';
    const waits = this.rx.endsBeside || (mayAnswer && this.rx.delivered === 0);
    return waits ? wordTimeout(pairTimeout) : pairTimeout;
  }

  /**
   * Returns why bytes are missing where no connection failed here: one was reset at the peer, or
   * ended too early.
   */
  #cause(): Error {
    const { alone, delivered, done, total } = this.rx;
    if (alone >= 0 && !done[PRIMARY]) return systemError('ECONNRESET', 'read');
    return truncatedError(delivered, total);
  }

  /** The copy brings nothing more. */
  lose(copy: Copy): void {
    this.rx.lose(copy);
    this.#query();
  }

  /** The flow is over. */
  close(): void {
    this.leftUnread = this.#unread !== undefined || this.rx.early.length > 0;
    clearTimeout(this.#endTimer);
    clearTimeout(this.#queryTimer);
  }
}

/**
 * Throws an error of the application outside this call, uncaught as with net: the connection is not
 * at fault.
 */
function throwLater(error: unknown): void {
  process.nextTick(() => {
    throw error;
  });
}
