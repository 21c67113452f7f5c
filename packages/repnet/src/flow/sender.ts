/**
 * The sending side of a flow: sends bytes on the copies that machine.ts chooses, archives them for
 * a copy that has not come, and holds them back at the threshold.
 */

import { performance } from 'node:perf_hooks';
import { systemError } from '../errors.js';
import { Archive } from '../memory/archive.js';
import * as budget from '../memory/budget.js';
import { counters } from '../stats.js';
import { Record as Control, controlRecord, copyRecords, payloads, pushRecords } from '../wire.js';
import { type Callback, Doubt, FirstOf, InContext, onceBoth } from './callbacks.js';
import type { Leg } from './leg.js';
import { COPIES, type Copy, other, PRIMARY, REPLICA, SendMachine } from './machine.js';
import type { SenderHost } from './roles.js';
import { wordTimeout } from './waits.js';

/** Milliseconds that an elephant waits at the threshold for a report on the first copy. */
const VERDICT_TIMEOUT = 25;
/**
 * Bytes by which the first copy may trail the second before a message is doubled further; at most a
 * third of the threshold.
 */
const VERDICT_SLACK = 32 * 1024;

interface Held {
  bytes: Buffer;
  done: Callback;
}

export class Sender {
  readonly tx: SendMachine;
  readonly #host: SenderHost;
  #archive: Archive | undefined;
  /** The peer has spoken since our last message, or nobody has; nothing of ours is under way. */
  turned = true;
  /** A write of the application's is not done yet. */
  writing = false;
  #lastWrite = 0;
  #unfinished = 0;
  /** The end of the stream is under way. */
  #ending = false;
  #held: Held | undefined;
  #verdictTimer: NodeJS.Timeout | undefined;
  /** The wait for a verdict is over: it has not come. */
  #waited = false;
  /** Limits the wait for the first connection, which takes nothing while the second does. */
  #stuckTimer: NodeJS.Timeout | undefined;
  /** The peer knows that one copy carries the flow alone. */
  #saidAlone = false;
  /** The last copy was lost, and not because the peer wanted no more of the flow. */
  #brokenOff = false;
  readonly #doubt = new Doubt();
  /** The archived write under way: a copy that is sent the archive carries it, too. */
  #archivedWrite: FirstOf | undefined;

  /**
   * `begun`: the first copy has carried `offset` bytes, which are in the archive if there is one.
   */
  constructor(host: SenderHost, begun: { offset: number; archive: Archive | undefined } | undefined) {
    this.#host = host;
    this.tx = new SendMachine(
      host.options.threshold,
      begun && { offset: begun.offset, archived: begun.archive !== undefined },
    );
    this.#archive = begun?.archive;
  }

  /** Sends `prefix` and the archive on a new copy. Returns whether the archive had to be sent. */
  open(leg: Leg, prefix: Buffer | undefined): boolean {
    const { tx } = this;
    const { copy } = leg;
    const framed = copy === REPLICA;
    const doubled = tx.archived && tx.offset > 0 && tx.copies[other(copy)] === 'open';
    // Beyond the budget, bytes that the first connection has carried stay on it.
    if (doubled && !budget.takeBytes(tx.offset) && copy === REPLICA) tx.forgo();
    const replay = tx.open(copy);
    const parts: Buffer[] = prefix === undefined ? [] : [prefix];
    if (replay) {
      const archive = this.#archive?.parts ?? [];
      if (framed) {
        let offset = 0;
        for (const bytes of archive) {
          pushRecords(parts, offset, bytes);
          offset += bytes.length;
        }
      } else parts.push(...archive);
    }
    this.trimArchive();
    const carries = tx.copies[copy] !== 'gone';
    if (carries && framed) {
      if (tx.copies[other(copy)] === 'gone' && !replay && tx.offset > 0) parts.push(this.#alone());
      if (tx.total >= 0) parts.push(controlRecord(Control.end, tx.total));
    }
    if (parts.length > 0) this.post(leg, parts, replay ? this.#replays() : undefined);
    if (carries) {
      if (!framed && tx.total >= 0) leg.finish(() => {});
      this.release();
    }
    return replay;
  }

  /** The archive is sent on another copy, and with it a write that may still be under way. */
  #replays(): Callback | undefined {
    const write = this.#archivedWrite;
    this.#archivedWrite = undefined;
    if (write?.pending !== true) return undefined;
    write.begun(2);
    return write.callback;
  }

  /** The peer knows that the first copy will not come. */
  firstGivenUp(): void {
    if (this.tx.copies[PRIMARY] !== 'pending') return;
    this.tx.expectsFirst = false;
    this.release();
  }

  /**
   * A copy is lost; informs the peer on the other. `closed`: the peer wants no more of the flow.
   */
  lose(copy: Copy, closed: boolean): void {
    const { tx } = this;
    if (copy === PRIMARY && tx.copies[REPLICA] === 'open' && !tx.hasAll(REPLICA) && !closed)
      this.#doubt.arise(tx.offset);
    tx.lose(copy);
    this.#brokenOff = this.tx.state === 'ENDED' && !closed;
    const rest = this.#host.legs[other(copy)];
    const mayTell = rest?.copy === REPLICA && this.tx.copies[REPLICA] === 'open';
    if (mayTell && !this.#saidAlone) this.post(rest, [this.#alone()], undefined);
  }

  /** Said once: from then on everything is sent on the other copy anyway. */
  #alone(): Buffer {
    this.#saidAlone = true;
    return controlRecord(Control.alone, this.tx.offset);
  }

  /** Bytes of the peer's are delivered: what is written next may be a new message. */
  turn(): void {
    if (this.#unfinished === 0) this.turned = true;
  }

  // -------------------------------------------------------------- what the peer says of our stream

  stop(offset: number): void {
    if (offset <= this.tx.message || !this.tx.stop()) return;
    counters.doublingStopped++;
    this.release();
  }

  report(offset: number, plain: number): void {
    // If the first copy is dead, a report at half of a threshold would say that it keeps up.
    const slack = Math.min(VERDICT_SLACK, this.#host.options.threshold / 3);
    this.tx.report(offset, plain, slack);
    this.#doubt.received(offset);
    if (this.tx.verdict !== undefined) this.release();
  }

  /** The peer asks whether the stream ends where its first copy did, which we did not end. */
  query(): void {
    const { tx } = this;
    if (tx.total >= 0 || tx.copies[REPLICA] !== 'open') return;
    this.lose(PRIMARY, false);
    this.release();
  }

  // ------------------------------------------------------------------ what the application sends

  /** Sends `bytes`; calls `done` in the caller's async context when one copy has taken them. */
  write(bytes: Buffer, done: Callback): void {
    const { outer } = this.#host;
    outer.touch();
    if (bytes.length === 0) return done();
    budget.carried(bytes.length);
    this.#startMessage();
    this.writing = true;
    const written = new InContext((error) => {
      this.writing = false;
      if (error) this.#host.broken = true;
      else outer.touch();
      done(error);
    });
    this.#push(bytes, written.callback);
    written.leave();
  }

  /** Begins a message after a lull, or if the peer spoke when nothing of ours was under way. */
  #startMessage(): void {
    const now = performance.now();
    if (this.turned || now - this.#lastWrite > this.#host.options.lull) {
      this.turned = false;
      if (this.tx.offset > this.tx.message) {
        if (this.tx.newMessage()) counters.doublingResumed++;
      }
    }
    this.#lastWrite = now;
  }

  #push(bytes: Buffer, done: Callback): void {
    const { tx } = this;
    if (tx.state === 'ONE_CONN' && tx.copies[tx.chosen] === 'pending') {
      // The open copy is lost, the other still to come: the application waits, nothing piles up.
      this.#held = { bytes, done };
      return;
    }
    if (tx.awaitsFirst && !this.#fits(bytes.length)) {
      // No byte may be on the second copy alone: the application waits for the first, as with net.
      const room = this.#fits(tx.room) ? tx.room : 0;
      if (room > 0) {
        done = onceBoth(done);
        this.#archived(bytes.subarray(0, room), done);
      }
      this.#held = { bytes: bytes.subarray(room), done };
      return;
    }
    if (tx.state === 'DUP_CONN') {
      if (this.#firstIsStuck) return this.#holdForFirst(bytes, done);
      const room = this.#room(bytes.length);
      if (room >= bytes.length) return this.#both(bytes, done);
      if (room > 0) {
        done = onceBoth(done);
        this.#both(bytes.subarray(0, room), done);
        bytes = bytes.subarray(room);
      }
      if (!this.#choose()) {
        this.#hold(bytes, done);
        return;
      }
      if ((tx.state as string) === 'DUP_CONN') return this.#push(bytes, done);
    }
    this.#archived(bytes, done);
  }

  /** There is room for `n` bytes that the first copy will be sent when it comes. */
  #fits(n: number): boolean {
    return n <= this.tx.room && Archive.fits(n);
  }

  /** Sends bytes on the one copy that carries the flow; archives them while the other may come. */
  #archived(bytes: Buffer, done: Callback): void {
    const { tx } = this;
    const offset = tx.offset;
    const route = tx.route(bytes.length);
    if (route.archive) {
      this.#archive ??= new Archive();
      if (!this.#archive.push(bytes)) tx.forgo();
    }
    if (!tx.archived && this.#archive !== undefined) {
      this.trimArchive();
      counters.chosenEarly++;
    }
    if (route.copies === 0) return done(this.#broken());
    const copy = route.copies === 1 ? PRIMARY : REPLICA;
    if (!tx.archived) return this.#sendOn(copy, offset, bytes, done);
    // Archived bytes are not lost with the copy that failed under them.
    const first = new FirstOf(done);
    this.#archivedWrite = first;
    this.#sendOn(copy, offset, bytes, (error) => first.callback(error && this.tx.archived ? null : error));
    first.begun(1);
  }

  trimArchive(): void {
    if (this.tx.archived) return;
    this.#archive?.drop();
    this.#archive = undefined;
  }

  /** Returns all bytes written so far, if `tx.archived`. The caller has to drop the archive. */
  takeArchive(): Archive | undefined {
    const archive = this.#archive;
    this.#archive = undefined;
    return archive;
  }

  #room(wanted: number): number {
    const room = this.tx.room;
    if (room === 0) return 0;
    const replica = this.#host.legs[REPLICA]?.backlog ?? 0;
    if (replica > 2 * this.#host.options.threshold || !budget.takeBytes(Math.min(room, wanted))) {
      this.tx.verdict = 'keeps up';
      return 0;
    }
    return room;
  }

  /** Whether the first connection lags too far behind a second that moves. */
  get #firstIsStuck(): boolean {
    const primary = this.#host.legs[PRIMARY]?.backlog ?? 0;
    const replica = this.#host.legs[REPLICA]?.backlog ?? 0;
    return primary - replica > this.#backlogLimit;
  }

  /**
   * Holds bytes until the first connection takes some, as net would. If it takes nothing for
   * `pairTimeout`, it is given up for the second.
   */
  #holdForFirst(bytes: Buffer, done: Callback): void {
    this.#held = { bytes, done };
    const unsent = this.#host.legs[PRIMARY]?.unsent ?? 0;
    this.#stuckTimer = setTimeout(() => {
      const left = this.#host.legs[PRIMARY]?.unsent ?? 0;
      if (left < unsent) return this.#holdForFirst(bytes, done);
      counters.copiesFailed++;
      this.lose(PRIMARY, false);
      this.release();
    }, this.#host.options.pairTimeout);
  }

  /**
   * Decides at the threshold whether the first copy carries the rest, or both as much again.
   * Returns false if the receiver's report is awaited.
   */
  #choose(): boolean {
    const { tx } = this;
    if (tx.verdict === 'trails') {
      tx.extend();
      return true;
    }
    const primary = this.#host.legs[PRIMARY];
    const replica = this.#host.legs[REPLICA];
    const askable = primary !== undefined && replica !== undefined && this.#host.options.threshold > 0;
    if (tx.verdict === undefined && askable) {
      if (!this.#waited) return false;
      this.#waited = false;
      tx.extend();
      return true;
    }
    counters.doublingStopped++;
    tx.choose();
    return true;
  }

  #hold(bytes: Buffer, done: Callback): void {
    this.#held = { bytes, done };
    this.#verdictTimer = setTimeout(() => this.release(), VERDICT_TIMEOUT);
  }

  release(): void {
    const held = this.#held;
    if (held === undefined) return;
    this.#held = undefined;
    this.#waited = this.#verdictTimer !== undefined;
    this.#stopTimers();
    this.#push(held.bytes, held.done);
    this.#waited = false;
  }

  #stopTimers(): void {
    clearTimeout(this.#verdictTimer);
    clearTimeout(this.#stuckTimer);
    this.#verdictTimer = this.#stuckTimer = undefined;
  }

  #both(bytes: Buffer, done: Callback): void {
    const { tx } = this;
    const offset = tx.offset;
    tx.route(bytes.length);
    const first = new FirstOf(done);
    const primary = this.#host.legs[PRIMARY];
    const replica = this.#host.legs[REPLICA];
    // Both connections share one copy of the bytes: the application may reuse its buffer once
    // either connection has taken them, and the other may take long.
    const records = copyRecords(offset, bytes);
    // If the first connection fails under its write, the record that says so follows these bytes.
    if (replica === undefined) first.callback(this.#broken());
    else this.post(replica, records, first.callback);
    if (primary === undefined) first.callback(this.#broken());
    else this.#transmit(primary, payloads(records), first.callback);
    first.begun(2);
  }

  #sendOn(copy: Copy, offset: number, bytes: Buffer, done: Callback): void {
    const leg = this.#host.legs[copy];
    if (leg === undefined) return done(this.#broken());
    if (copy === REPLICA) {
      const parts: Buffer[] = [];
      pushRecords(parts, offset, bytes);
      this.#transmit(leg, parts, done);
    } else this.#transmit(leg, [bytes], done);
  }

  /** Sends parts at the end of this turn of the event loop, with all that is posted until then. */
  post(leg: Leg, parts: readonly Buffer[], done: Callback | undefined): void {
    leg.post(parts, this.#sent(leg, parts, done));
  }

  /**
   * Sends a control record that is no activity of the application's. `over`: the system has it, or
   * the connection failed.
   */
  tell(leg: Leg, word: Buffer, over: () => void): void {
    const sent = this.#sent(leg, [word], undefined);
    leg.post([word], (error) => {
      sent(error);
      over();
    });
  }

  /** Sends parts now. */
  #transmit(leg: Leg, parts: Buffer[], done: Callback | undefined): void {
    leg.send(parts, this.#sent(leg, parts, done));
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
        // Like net, reports no error of a write under way when the application destroys its socket.
        const destroyed = this.#host.outer.destroyed;
        leg.destroy(error);
        done?.(destroyed ? null : error);
        return;
      }
      done?.();
      if (this.#stuckTimer !== undefined && !this.#firstIsStuck) this.release();
    };
  }

  get #backlogLimit(): number {
    return Math.max(1024 * 1024, 4 * this.#host.options.threshold);
  }

  get underWay(): boolean {
    return this.#unfinished > 0 || this.#held !== undefined || this.#ending;
  }

  /** The application knows that all of its stream is sent, its end included. */
  get isSent(): boolean {
    return this.tx.total >= 0 && !this.#ending;
  }

  /** Ends the stream. Calls `done` in the caller's async context when the end is sent. */
  end(done: Callback): void {
    const ended = new InContext(done);
    this.#end(ended.callback);
    ended.leave();
  }

  /** Sends FIN on the first connection, the total on the second. */
  #end(done: Callback): void {
    this.tx.end();
    // A copy that is open, or comes later, carries the end if another fails under it.
    this.#ending = true;
    const over = (error?: Error | null) => {
      this.#ending = false;
      if (error && this.#brokenOff) {
        this.#host.broken = true;
        done(error);
      } else done(null);
    };
    const patience = wordTimeout(this.#host.options.pairTimeout);
    const first = new FirstOf((error) => (error ? over(error) : this.#doubt.whenSettled(over, patience)));
    let sent = 0;
    for (const copy of COPIES) {
      const leg = this.#host.legs[copy];
      if (leg === undefined || this.tx.copies[copy] === 'pending') continue;
      const open = this.tx.copies[copy] === 'open';
      if (copy === REPLICA)
        this.post(leg, [controlRecord(Control.end, this.tx.total)], open ? first.callback : undefined);
      else if (open) leg.finish(first.callback);
      if (open) sent++;
    }
    if (sent > 0) first.begun(sent);
    else over(this.#broken());
  }

  /** Returns why there is nothing to send on. */
  #broken(): NodeJS.ErrnoException {
    return this.#host.lastError ?? systemError('EPIPE', 'write');
  }

  /** The flow is over. */
  close(): void {
    this.#stopTimers();
    const held = this.#held;
    this.#held = undefined;
    this.#archive?.drop();
    this.#archive = undefined;
    held?.done(systemError('EPIPE', 'write'));
    this.#doubt.close();
  }
}
