/**
 * A race of the addresses of one name (RFC 8305, sections 5 and 8). The next attempt begins after a
 * delay, or at once when one has failed. The delay ends no attempt: the first handshake wins.
 */
import { type Handle, tellsAttempts } from '../net-internals.js';
import type { Attempt, AttemptSink } from './attempt.js';
import { type DropBy, dropLoser } from './loser.js';
import type { Address } from './resolution.js';

export interface RaceOptions {
  port: number;
  /** Milliseconds between the beginnings of two attempts. */
  delay: number;
  /** Closing of attempts that lose, if the system has established them: by RST, or in order. */
  loser: DropBy;
  /**
   * A sooner beginning of the second attempt: after so many milliseconds, if `take` returns true
   * then.
   */
  early?: { after: number; take: () => boolean } | undefined;
  /**
   * Addresses that the application's block list forbids: each fails without an attempt, as with
   * net.
   */
  isBlocked?: (address: Address) => boolean;
}

export interface RaceSink {
  /** Events that net emits for an attempt: 'connectionAttempt', 'connectionAttemptFailed'. */
  raceEvent(event: string, args: unknown[]): void;
  /**
   * An attempt is established, and all others have been dropped. `order`: 0 for the one that began
   * first.
   */
  raceWon(attempt: Attempt, handle: Handle, order: number): void;
  /**
   * Every attempt has failed. `error`: an AggregateError with the cause of each, as net gives it.
   */
  raceFailed(error: NodeJS.ErrnoException): void;
}

/** Makes an attempt at one address; its events go to `sink`. */
export type MakeAttempt = (address: Address, sink: AttemptSink) => Attempt;

/** The error of net for a name whose addresses have all failed. */
function aggregate(errors: NodeJS.ErrnoException[]): NodeJS.ErrnoException {
  return Object.assign(new AggregateError(errors, ''), { code: errors[0]?.code as string });
}

interface Runner {
  order: number;
  address: Address;
  isBlocked: boolean;
  /** An event has reported the failure. */
  reported: boolean;
}

export class AddressRace implements AttemptSink {
  /** 'address:port' of each attempt, in order: net's property of the socket. */
  readonly attempted: string[] = [];
  readonly #sink: RaceSink;
  readonly #options: RaceOptions;
  readonly #make: MakeAttempt;
  readonly #queue: Address[];
  /** Attempts under way. */
  readonly #running = new Map<Attempt, Runner>();
  /** Errors in the order in which their attempts began. */
  readonly #errors: NodeJS.ErrnoException[] = [];
  #begun = 0;
  #timer: NodeJS.Timeout | undefined;
  #isOver = false;
  #isUnref = false;

  constructor(sink: RaceSink, addresses: readonly Address[], options: RaceOptions, make: MakeAttempt) {
    this.#sink = sink;
    this.#queue = [...addresses];
    this.#options = options;
    this.#make = make;
  }

  start(): void {
    const { early } = this.#options;
    this.#next();
    if (early === undefined || this.#isOver || this.#begun > 1) return;
    const { delay } = this.#options;
    const begin = () => {
      if (this.#isOver || this.#begun > 1 || this.isEstablished) return;
      if (early.take()) this.#next();
      else this.#arm(delay - early.after, () => this.#next());
    };
    if (early.after === 0) process.nextTick(begin);
    else if (early.after < delay) this.#arm(early.after, begin);
  }

  /** The system has established an attempt, which is not reported yet. */
  get isEstablished(): boolean {
    for (const attempt of this.#running.keys()) if (attempt.isEstablished) return true;
    return false;
  }

  /** The attempt that began last and has not failed. */
  get latest(): Attempt | undefined {
    return [...this.#running.keys()].at(-1);
  }

  #arm(delay: number, due: () => void): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(due, delay);
    this.#timer.unref();
  }

  #next(): void {
    clearTimeout(this.#timer);
    // An established attempt is reported, as won or failed, in this turn of the event loop or the
    // next.
    if (this.#isOver || this.isEstablished) return;
    const address = this.#queue.shift();
    if (address === undefined) {
      if (this.#running.size === 0) this.#fail();
      return;
    }
    const attempt = this.#make(address, this);
    const { port, isBlocked } = this.#options;
    const runner = {
      order: this.#begun++,
      address,
      isBlocked: isBlocked?.(address) === true,
      reported: false,
    };
    this.#running.set(attempt, runner);
    if (!runner.isBlocked) this.attempted.push(`${address}:${port}`);
    if (this.#isUnref) attempt.unref();
    attempt.start(true);
    if (!this.#isOver && this.#queue.length > 0 && this.#running.has(attempt))
      this.#arm(this.#options.delay, () => this.#next());
  }

  #fail(): void {
    this.#isOver = true;
    this.#sink.raceFailed(aggregate(this.#errors.filter((error) => error !== undefined)));
  }

  attemptOpen(attempt: Attempt, handle: Handle): void {
    const order = this.#running.get(attempt)?.order ?? 0;
    this.#running.delete(attempt);
    this.#end(this.#options.loser);
    this.#sink.raceWon(attempt, handle, order);
  }

  attemptFailed(attempt: Attempt, error: NodeJS.ErrnoException | undefined): void {
    const runner = this.#running.get(attempt);
    this.#running.delete(attempt);
    if (this.#isOver || runner === undefined) return;
    if (error !== undefined) {
      this.#errors[runner.order] = error;
      this.#report(runner, error);
    }
    this.#next();
  }

  /**
   * Reports that an attempt among several was refused by the system at once, as net does; for a
   * single address it has no event.
   */
  #report({ address, reported }: Runner, error: NodeJS.ErrnoException): void {
    if (reported || !tellsAttempts || error.syscall === 'bind') return;
    const { port } = this.#options;
    this.#sink.raceEvent('connectionAttemptFailed', [address, port, address.includes(':') ? 6 : 4, error]);
  }

  attemptEvent(attempt: Attempt, event: string, args: unknown[]): void {
    const runner = this.#running.get(attempt);
    if (this.#isOver || runner === undefined) return;
    if (event === 'connectionAttemptFailed') runner.reported = true;
    else if (runner.isBlocked) return;
    this.#sink.raceEvent(event, args);
  }

  /** Gives up every attempt. `reset`: by RST, where the system has established one. */
  abandon(reset: boolean): void {
    this.#end(reset ? 'rst' : undefined);
  }

  #end(loser: DropBy | undefined): void {
    this.#isOver = true;
    clearTimeout(this.#timer);
    const losers = [...this.#running.keys()];
    this.#running.clear();
    for (const attempt of losers)
      if (loser === undefined) attempt.abandon(false);
      else dropLoser(attempt, loser);
  }

  ref(): void {
    this.#isUnref = false;
    for (const attempt of this.#running.keys()) attempt.ref();
  }
  unref(): void {
    this.#isUnref = true;
    for (const attempt of this.#running.keys()) attempt.unref();
  }
}
