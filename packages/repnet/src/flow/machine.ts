/**
 * The state machine of one direction of a flow (RepNet paper, Tables I and II), without sockets,
 * clocks or buffers.
 *
 * A flow has two of each: the copy that brings the request first need not bring the reply first.
 * `SendMachine` decides which copies carry the next bytes; `ReceiveMachine` decides which bytes of
 * a copy are new and when the stream ends.
 *
 * | state    | meaning                                                | bytes go to            |
 * |----------|--------------------------------------------------------|------------------------|
 * | ONE_CONN | one copy is open, the other may still come             | the open one; archived. On the second copy alone no more than the threshold: the rest waits for the first |
 * | DUP_CONN | both are open and the message is below the threshold   | both                   |
 * | CHOSEN   | one copy carries the flow: the first for this message, or the one that is left for good | the chosen one |
 * | ENDED    | nothing more can be sent                               | none                   |
 */
import { type Early, EarlyPieces } from './early.js';

export const PRIMARY = 0;
export const REPLICA = 1;
export type Copy = typeof PRIMARY | typeof REPLICA;
export const COPIES: readonly Copy[] = [PRIMARY, REPLICA];

export type State = 'ONE_CONN' | 'DUP_CONN' | 'CHOSEN' | 'ENDED';
export type CopyState = 'pending' | 'open' | 'gone';

export function other(copy: Copy): Copy {
  return copy === PRIMARY ? REPLICA : PRIMARY;
}

/** The route of some bytes: `copies` is a bit set (1 primary, 2 replica). */
export interface Route {
  copies: number;
  archive: boolean;
}

export class SendMachine {
  state: State = 'ONE_CONN';
  readonly copies: [CopyState, CopyState] = ['pending', 'pending'];
  /** Application bytes routed so far. */
  offset = 0;
  /** Offset at which the current message began. */
  message = 0;
  /** Total length once the application has ended; -1 before. */
  total = -1;
  /** The copy that carries the flow in CHOSEN. */
  chosen: Copy = PRIMARY;
  /** The receiver's latest report on this message: the first copy keeps up, or it trails. */
  verdict: 'keeps up' | 'trails' | undefined;
  /** Every byte since offset 0 is still archived for the copy that is pending. */
  archived = true;
  /** The first copy may still come; false while it is pending: the peer has given it up. */
  expectsFirst = true;
  readonly #threshold: number;
  /** Bytes that each copy has been sent. */
  readonly #sent: [number, number] = [0, 0];
  #allowance: number;

  /**
   * `threshold`: bytes of one message that are doubled. `begun`: the first copy is open, and has
   * carried `offset` bytes.
   */
  constructor(threshold: number, begun?: { offset: number; archived: boolean }) {
    this.#threshold = threshold;
    this.#allowance = threshold;
    if (begun !== undefined) {
      this.copies[PRIMARY] = 'open';
      this.offset = this.#sent[PRIMARY] = begun.offset;
      this.archived = begun.archived;
      this.state = begun.archived ? 'ONE_CONN' : 'CHOSEN';
    }
  }

  /**
   * Transition 1: a copy is usable. Returns whether the archive has to be sent on it, from offset
   * 0. Records may begin anywhere; the first copy, a plain stream, cannot carry this direction if
   * it comes after the archive was dropped.
   */
  open(copy: Copy): boolean {
    if (this.copies[copy] !== 'pending') return false;
    const rest = other(copy);
    if (!this.archived && copy === PRIMARY) {
      this.lose(copy);
      return false;
    }
    this.copies[copy] = 'open';
    const replay = this.archived && this.offset > 0;
    if (replay) this.#sent[copy] = this.offset;
    switch (this.copies[rest]) {
      case 'pending':
        this.chosen = copy;
        this.state = this.archived ? 'ONE_CONN' : 'CHOSEN';
        return replay;
      case 'gone':
        this.chosen = copy;
        this.state = 'CHOSEN';
        break;
      default:
        this.state = this.archived ? 'DUP_CONN' : 'CHOSEN';
    }
    this.archived = false;
    return replay;
  }

  /** Transitions 2, 3 and 5 to 7: a copy failed, or its time ran out while it was pending. */
  lose(copy: Copy): void {
    if (this.copies[copy] === 'gone') return;
    this.copies[copy] = 'gone';
    const rest = other(copy);
    switch (this.copies[rest]) {
      case 'gone':
        this.state = 'ENDED';
        this.archived = false;
        break;
      case 'open':
        this.chosen = rest;
        this.state = 'CHOSEN';
        this.archived = false;
        break;
      default:
        // The open copy is lost while the other is pending: the archive, if it is whole, suffices.
        this.state = 'ONE_CONN';
        this.chosen = rest;
    }
  }

  /**
   * Returns whether only the second copy is open, and the first may still come. The first has to be
   * sent everything: bytes that it lacks are lost with the second.
   */
  get awaitsFirst(): boolean {
    return (
      this.state === 'ONE_CONN' &&
      this.chosen === REPLICA &&
      this.copies[REPLICA] === 'open' &&
      this.expectsFirst
    );
  }

  /**
   * Bytes that may be doubled in this message, now or when the first copy comes; at 0 a verdict or
   * a choice is due.
   */
  get room(): number {
    if (this.awaitsFirst) return Math.max(0, this.#threshold - this.offset);
    if (this.state !== 'DUP_CONN') return 0;
    return Math.max(0, this.#allowance - (this.offset - this.message));
  }

  /**
   * Routes the next `n` bytes. In DUP_CONN, and while the first copy is awaited, `n` is at most
   * `room`.
   */
  route(n: number): Route {
    const route = this.#route(n);
    for (const copy of COPIES) if ((route.copies & (1 << copy)) !== 0) this.#sent[copy] += n;
    return route;
  }

  #route(n: number): Route {
    switch (this.state) {
      case 'ONE_CONN': {
        this.offset += n;
        const open = this.copies[this.chosen] === 'open';
        if (this.archived && open && this.offset > this.#threshold) {
          // Transition 4: too much to keep for a connection that may never come.
          this.archived = false;
          this.state = 'CHOSEN';
        }
        return { copies: open ? 1 << this.chosen : 0, archive: this.archived };
      }
      case 'DUP_CONN':
        this.offset += n;
        return { copies: 3, archive: false };
      case 'CHOSEN':
        this.offset += n;
        return { copies: 1 << this.chosen, archive: false };
      default:
        return { copies: 0, archive: false };
    }
  }

  /** Returns whether the copy has been sent all routed bytes. */
  hasAll(copy: Copy): boolean {
    return this.#sent[copy] === this.offset;
  }

  /** Transition 4, for lack of room: gives up the archive. */
  forgo(): void {
    this.archived = false;
    if (this.state === 'ONE_CONN' && this.copies[this.chosen] === 'open') this.state = 'CHOSEN';
  }

  /**
   * Transition 8: the message outgrew the threshold, or the receiver said *stop*. The first copy
   * carries the rest: while it is open it is sent every byte, so that a second path that fails
   * takes nothing with it.
   */
  choose(): void {
    if (this.state !== 'DUP_CONN') return;
    this.chosen = PRIMARY;
    this.state = 'CHOSEN';
  }

  /** Doubles as much again: the first copy trails, or may be dead, since no report came in time. */
  extend(): void {
    this.#allowance *= 2;
    this.verdict = undefined;
  }

  /**
   * The receiver has everything by the first copy, and wants no more of this message on the second.
   * Returns false if nothing was doubled.
   */
  stop(): boolean {
    if (this.state !== 'DUP_CONN') return false;
    this.choose();
    return true;
  }

  /** The receiver reports on the message that covers `offset`. */
  report(offset: number, firstBrought: number, slack: number): void {
    if (offset > this.message) this.verdict = offset - firstBrought <= slack ? 'keeps up' : 'trails';
  }

  /** Transition 9: a new message begins, after a lull or a turn. Returns whether it is doubled. */
  newMessage(): boolean {
    this.message = this.offset;
    this.#allowance = this.#threshold;
    this.verdict = undefined;
    if (this.state !== 'CHOSEN') return false;
    if (this.copies[PRIMARY] !== 'open' || this.copies[REPLICA] !== 'open') return false;
    this.state = 'DUP_CONN';
    return true;
  }

  /** The application ended the stream. */
  end(): void {
    this.total = this.offset;
  }
}

/**
 * Verdict on the end of a stream; 'wait': only a bare FIN so far, the other copy may know better.
 */
export type End = 'open' | 'end' | 'wait' | 'truncated';

const NONE: readonly Early[] = [];

export class ReceiveMachine {
  readonly copies: [CopyState, CopyState] = ['pending', 'pending'];
  /** The copy brings nothing more: a FIN on the first, an end record on the second. */
  readonly done: [boolean, boolean] = [false, false];
  /** Bytes given to the application, in order, once each. */
  delivered = 0;
  /** Contiguous bytes that the plain first copy has brought. */
  plain = 0;
  /** End of the last bytes of each copy. */
  readonly reach: [number, number] = [0, 0];
  /** Declared total; -1 while unknown. */
  total = -1;
  /** The peer gave its first copy up, having sent everything below this offset; -1 before. */
  alone = -1;
  readonly won: [number, number] = [0, 0];
  duplicate = 0;
  /**
   * Records beyond `delivered`, in no particular order; the other copy is expected to fill the
   * hole.
   */
  get early(): readonly Early[] {
    return this.#early?.pieces ?? NONE;
  }
  #early: EarlyPieces | undefined;
  #highest = 0;

  constructor(delivered = 0) {
    this.delivered = this.plain = this.#highest = delivered;
    this.won[PRIMARY] = this.reach[PRIMARY] = this.delivered;
  }

  open(copy: Copy): void {
    if (this.copies[copy] === 'pending') this.copies[copy] = 'open';
  }

  lose(copy: Copy): void {
    this.copies[copy] = 'gone';
  }

  /**
   * Accepts `n` bytes on the plain first copy. Returns how many leading ones the application has.
   */
  acceptPlain(n: number): number {
    const skip = Math.min(n, this.delivered - this.plain);
    this.plain += n;
    this.reach[PRIMARY] = this.plain;
    this.#count(PRIMARY, n - skip, skip);
    return skip;
  }

  /**
   * Accepts `n` bytes at `offset` on the second copy. Returns how many to skip, or -1 if they are
   * early.
   */
  acceptRecord(offset: number, n: number): number {
    this.announce(offset + n);
    this.reach[REPLICA] = offset + n;
    if (offset > this.delivered) return -1;
    const skip = Math.min(n, this.delivered - offset);
    this.#count(REPLICA, n - skip, skip);
    return skip;
  }

  /** The memory that early records take. */
  get earlyBytes(): number {
    return this.#early?.size ?? 0;
  }

  /** The end of all that the peer is known to have sent. */
  get highest(): number {
    return this.#highest;
  }

  keepEarly(offset: number, bytes: Buffer): void {
    this.#early ??= new EarlyPieces();
    this.#early.add(offset, bytes);
  }

  /** The next early bytes that have become deliverable, trimmed and counted. */
  takeEarly(): Buffer | undefined {
    for (;;) {
      const next = this.#early?.takeUpTo(this.delivered);
      if (next === undefined) return undefined;
      const { offset, bytes } = next;
      const skip = Math.min(bytes.length, this.delivered - offset);
      this.#count(REPLICA, bytes.length - skip, skip);
      if (skip < bytes.length) return skip === 0 ? bytes : bytes.subarray(skip);
    }
  }

  #count(copy: Copy, fresh: number, duplicate: number): void {
    this.won[copy] += fresh;
    this.delivered += fresh;
    if (this.delivered > this.#highest) this.#highest = this.delivered;
    this.duplicate += duplicate;
  }

  /**
   * The peer is known to have sent bytes up to `offset`: a stream that ends before it is truncated.
   */
  announce(offset: number): void {
    if (offset > this.#highest) this.#highest = offset;
  }

  /** The first copy, a plain stream, ended by FIN. */
  fin(): void {
    this.done[PRIMARY] = true;
  }

  /** The second copy declared the total length. */
  end(total: number): void {
    this.done[REPLICA] = true;
    this.total = total;
  }

  #mayBring(copy: Copy): boolean {
    return this.copies[copy] !== 'gone' && !this.done[copy];
  }

  /**
   * Returns whether the peer has to be asked where the stream ends: the plain first copy is over,
   * and the second has not declared the total.
   */
  get asks(): boolean {
    if (this.total >= 0) return false;
    return !this.#mayBring(PRIMARY) && this.copies[REPLICA] === 'open';
  }

  /**
   * Returns whether the stream is over. A bare FIN counts only if the second copy cannot say
   * otherwise; a declared total always counts. Bytes that were announced and can no longer come are
   * a truncation, never an end. 'wait': give the other copy a bounded time, then lose the one that
   * `suspect` names and ask again.
   */
  verdict(): End {
    if (this.total >= 0) {
      if (this.delivered >= this.total) return 'end';
      if (!this.#mayBring(PRIMARY) && !this.#mayBring(REPLICA)) return 'truncated';
      if (this.alone < 0) return 'open';
      if (this.copies[this.suspect] !== 'gone') return 'wait';
      // The other copy brings only bytes beyond those that it says were all before.
      return this.alone > this.delivered ? 'truncated' : 'open';
    }
    const hole = this.alone > this.delivered || this.early.length > 0;
    switch (this.copies[REPLICA]) {
      case 'open':
        if (this.#mayBring(PRIMARY)) return hole && this.alone >= 0 ? 'wait' : 'open';
        if (hole) return 'truncated';
        // Bytes beyond the FIN, or the sender's word, show that only that copy is at fault.
        if (this.alone >= 0 || this.#highest > this.plain) return 'open';
        return this.done[PRIMARY] ? 'wait' : 'open';
      case 'pending':
        return this.done[PRIMARY] ? 'wait' : 'open';
      default:
        if (this.#mayBring(PRIMARY)) return 'open';
        return this.done[PRIMARY] && this.plain >= this.#highest ? 'end' : 'truncated';
    }
  }

  /** In 'wait', the copy that is taken for dead when the time is up. */
  get suspect(): Copy {
    return this.#mayBring(PRIMARY) ? PRIMARY : REPLICA;
  }

  /**
   * In 'wait': whether a bare FIN is the end once the time is up, although the second copy, which
   * has been silent about it, may live.
   */
  get endsBeside(): boolean {
    return this.total < 0 && this.suspect === REPLICA && this.copies[REPLICA] === 'open';
  }
}
