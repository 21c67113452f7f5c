/**
 * The state machine of one direction of a flow (RepNet paper, Tables I and II), without sockets, clocks or buffers.
 *
 * A flow has two of each: the copy that brings the request first need not bring the reply first. `SendMachine` decides
 * which copies carry the next bytes; `ReceiveMachine` decides which bytes of a copy are new and when the stream ends.
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

/** What to do with the bytes routed: `copies` is a bit set (1 primary, 2 replica). */
export interface Route {
  copies: number;
  archive: boolean;
}

export interface SendLimits {
  /** Bytes of one message that are doubled. */
  threshold: number;
  /** Copies whose records carry offsets, so that they may begin or go on anywhere; a plain stream cannot. */
  framed: readonly [boolean, boolean];
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
  /** The peer has taken the second copy: what it has been sent counts. Client side: when it has answered the hello. */
  taken = true;
  /** The first copy may still come; false while it is pending: the peer has given it up. */
  expectsFirst = true;
  readonly #limits: SendLimits;
  /** Bytes that each copy has been sent. */
  readonly #sent: [number, number] = [0, 0];
  #allowance: number;

  /** `begun`: the first copy is open already and has carried `offset` bytes. */
  constructor(limits: SendLimits, begun?: { offset: number; archived: boolean }) {
    this.#limits = limits;
    this.#allowance = limits.threshold;
    if (begun !== undefined) {
      this.copies[PRIMARY] = 'open';
      this.offset = this.#sent[PRIMARY] = begun.offset;
      this.archived = begun.archived;
      this.state = begun.archived ? 'ONE_CONN' : 'CHOSEN';
    }
  }

  /**
   * Transition 1: a copy is usable. Returns true if what is archived must now be sent on it, from offset 0. A plain copy
   * that comes after the archive was dropped can never carry this direction.
   */
  open(copy: Copy): boolean {
    if (this.copies[copy] !== 'pending') return false;
    const rest = other(copy);
    if (!this.archived && !this.#limits.framed[copy]) {
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
        // The one open copy is lost while the other is pending: the archive is all that is needed, if it is whole.
        this.state = 'ONE_CONN';
        this.chosen = rest;
    }
  }

  /**
   * Only the second copy is open, and the first may still come: it has to be sent everything, since what it is spared is lost
   * with the second.
   */
  get awaitsFirst(): boolean {
    return (
      this.state === 'ONE_CONN' &&
      this.chosen === REPLICA &&
      this.copies[REPLICA] === 'open' &&
      this.expectsFirst
    );
  }

  /** Bytes that may still be doubled in this message, now or when the first copy comes; 0 asks for a verdict or a choice. */
  get room(): number {
    if (this.awaitsFirst) return Math.max(0, this.#limits.threshold - this.offset);
    if (this.state !== 'DUP_CONN') return 0;
    return Math.max(0, this.#allowance - (this.offset - this.message));
  }

  /** Routes the next `n` bytes. In DUP_CONN, and while the first copy is awaited, `n` is at most `room`. */
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
        if (this.archived && open && this.offset > this.#limits.threshold) {
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

  /** The copy has been sent all that was routed. */
  hasAll(copy: Copy): boolean {
    return this.#sent[copy] === this.offset;
  }

  /** Transition 4, for want of room: the archive is given up. */
  forgo(): void {
    this.archived = false;
    if (this.state === 'ONE_CONN' && this.copies[this.chosen] === 'open') this.state = 'CHOSEN';
  }

  /**
   * Transition 8: the message outgrew the threshold (or the receiver said stop); the first copy carries the rest of it. Never the
   * second: while the first copy is open it is sent every byte, so that a second path that fails takes nothing with it.
   */
  choose(): void {
    if (this.state !== 'DUP_CONN') return;
    this.chosen = PRIMARY;
    this.state = 'CHOSEN';
  }

  /** Doubles as much again: the first copy trails, or no report came in time, so that it may be dead. */
  extend(): void {
    this.#allowance *= 2;
    this.verdict = undefined;
  }

  /** The receiver has everything by the first copy and asks for no more of this message on `copy`. Returns false if nothing stops. */
  stop(copy: Copy): boolean {
    if (this.state !== 'DUP_CONN' || copy === PRIMARY) return false;
    this.choose();
    return true;
  }

  /** The receiver reports on the message that covers `offset`. */
  report(offset: number, firstBrought: number, slack: number): void {
    if (offset > this.message) this.verdict = offset - firstBrought <= slack ? 'keeps up' : 'trails';
  }

  /** Transition 9: a new message begins (after a lull or a turn): it may be doubled again. Returns true if it now is. */
  newMessage(): boolean {
    this.message = this.offset;
    this.#allowance = this.#limits.threshold;
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

/** Verdict on the end of a stream; 'wait': only a bare FIN so far, the other copy may know better. */
export type End = 'open' | 'end' | 'wait' | 'truncated';

const NONE: readonly Early[] = [];

export class ReceiveMachine {
  readonly copies: [CopyState, CopyState] = ['pending', 'pending'];
  /** The copy has said that it brings nothing more: a FIN on a plain copy, an end record on a framed one. */
  readonly done: [boolean, boolean] = [false, false];
  /** Bytes handed to the application, in order, once each. */
  delivered = 0;
  /** Contiguous bytes the plain first copy has brought. */
  plain = 0;
  /** End of the last bytes of each copy. */
  readonly reach: [number, number] = [0, 0];
  /** The copy that the peer has given up, if it said so. */
  lost: Copy = PRIMARY;
  /** Declared total; -1 while unknown. */
  total = -1;
  /** The peer gave its first copy up, having sent everything below this offset; -1 before. */
  alone = -1;
  readonly won: [number, number] = [0, 0];
  duplicate = 0;
  /** Records beyond `delivered`, in no particular order; the other copy is expected to fill the hole. */
  get early(): readonly Early[] {
    return this.#early?.pieces ?? NONE;
  }
  #early: EarlyPieces | undefined;
  readonly #framedFirst: boolean;
  #highest = 0;

  constructor(options: { framedFirst: boolean; delivered?: number }) {
    this.#framedFirst = options.framedFirst;
    this.delivered = this.plain = this.#highest = options.delivered ?? 0;
    this.won[PRIMARY] = this.reach[PRIMARY] = this.delivered;
  }

  open(copy: Copy): void {
    if (this.copies[copy] === 'pending') this.copies[copy] = 'open';
  }

  lose(copy: Copy): void {
    this.copies[copy] = 'gone';
  }

  /** `n` further bytes on the plain first copy: how many leading ones the application already has. */
  acceptPlain(n: number): number {
    const skip = Math.min(n, this.delivered - this.plain);
    this.plain += n;
    this.reach[PRIMARY] = this.plain;
    this.#count(PRIMARY, n - skip, skip);
    return skip;
  }

  /** `n` bytes at `offset` on a framed copy: how many leading ones to skip, or -1 if they are early. */
  acceptRecord(copy: Copy, offset: number, n: number): number {
    this.announce(offset + n);
    this.reach[copy] = offset + n;
    if (offset > this.delivered) return -1;
    const skip = Math.min(n, this.delivered - offset);
    this.#count(copy, n - skip, skip);
    return skip;
  }

  /** The memory that the early records of a copy take. */
  earlyBytes(copy: Copy): number {
    return this.#early?.bytesOf[copy] ?? 0;
  }

  /** The end of all that the peer is known to have sent. */
  get highest(): number {
    return this.#highest;
  }

  keepEarly(copy: Copy, offset: number, bytes: Buffer): void {
    this.#early ??= new EarlyPieces();
    this.#early.add(copy, offset, bytes);
  }

  /** The next early bytes that have become deliverable, trimmed and counted. */
  takeEarly(): { copy: Copy; bytes: Buffer } | undefined {
    for (;;) {
      const next = this.#early?.takeUpTo(this.delivered);
      if (next === undefined) return undefined;
      const { copy, offset, bytes } = next;
      const skip = Math.min(bytes.length, this.delivered - offset);
      this.#count(copy, bytes.length - skip, skip);
      if (skip < bytes.length) return { copy, bytes: skip === 0 ? bytes : bytes.subarray(skip) };
    }
  }

  #count(copy: Copy, fresh: number, duplicate: number): void {
    this.won[copy] += fresh;
    this.delivered += fresh;
    if (this.delivered > this.#highest) this.#highest = this.delivered;
    this.duplicate += duplicate;
  }

  /** The peer is known to have sent bytes up to `offset`: a stream that ends before it is truncated. */
  announce(offset: number): void {
    if (offset > this.#highest) this.#highest = offset;
  }

  /** The first copy, a plain stream, ended by FIN. */
  fin(): void {
    this.done[PRIMARY] = true;
  }

  /** A framed copy declared the total length. */
  end(copy: Copy, total: number): void {
    this.done[copy] = true;
    this.total = total;
  }

  #mayBring(copy: Copy): boolean {
    return this.copies[copy] !== 'gone' && !this.done[copy];
  }

  /** The plain first copy is over, and the second, which can tell, has not told where the stream ends: the peer has to be asked. */
  get asks(): boolean {
    if (this.#framedFirst || this.total >= 0) return false;
    return !this.#mayBring(PRIMARY) && this.copies[REPLICA] === 'open';
  }

  /**
   * Whether the stream is over. A bare FIN counts only when the framed copy cannot say otherwise; a declared total counts
   * always; bytes that were announced and can no longer come are a truncation, never an end. 'wait': give the other copy
   * a bounded time, then lose the one that `suspect` names and ask again.
   */
  verdict(): End {
    if (this.total >= 0) {
      if (this.delivered >= this.total) return 'end';
      if (!this.#mayBring(PRIMARY) && !this.#mayBring(REPLICA)) return 'truncated';
      if (this.alone < 0) return 'open';
      if (this.copies[this.suspect] !== 'gone') return 'wait';
      // What the other brings lies beyond what it has said is all there was before.
      return this.alone > this.delivered ? 'truncated' : 'open';
    }
    const hole = this.alone > this.delivered || this.early.length > 0;
    if (this.#framedFirst) {
      if (this.copies[PRIMARY] === 'gone' && this.copies[REPLICA] === 'gone') return 'truncated';
      if (this.alone <= this.delivered) return 'open';
      return this.copies[this.lost] === 'gone' ? 'truncated' : 'wait';
    }
    switch (this.copies[REPLICA]) {
      case 'open':
        if (this.#mayBring(PRIMARY)) return hole && this.alone >= 0 ? 'wait' : 'open';
        if (hole) return 'truncated';
        // Bytes beyond the FIN, or the sender's word, prove it the fault of that copy alone.
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
    if (this.#framedFirst) return this.lost;
    return this.#mayBring(PRIMARY) ? PRIMARY : REPLICA;
  }

  /** In 'wait': a bare FIN is the end once the time is up, whatever the second copy, which has been silent about it, is worth. */
  get endsBeside(): boolean {
    return (
      this.total < 0 && this.suspect === REPLICA && this.copies[REPLICA] === 'open' && !this.#framedFirst
    );
  }
}
