/**
 * The waiting list of a server (RepNet paper, III-D), and its memory of pairs.
 *
 * A flow is listed by its client's address and port when its first connection arrives. It waits for the other until the
 * timeout, and is remembered afterwards, also when it has ended, for as long as the other connection could still turn
 * up: a twin that cannot be placed is refused, never taken for a new flow. Time is counted in ticks of one timer, so that
 * a process that was suspended does not forget what is still in its accept queue.
 */
export type EntryState = 'waiting' | 'paired' | 'over';

export interface Entry<T> {
  readonly key: string;
  state: EntryState;
  /** Which connection came first. */
  readonly first: 'primary' | 'replica';
  flow: T | undefined;
  /** Tick at which the wait is over. */
  until: number;
}

export interface WaitingOptions {
  /** Milliseconds. */
  timeout: number;
  /** Entries held at most, waiting and remembered. */
  entries: number;
}

const TICKS = 4;
/** Remembered for this many timeouts after the wait. */
const MEMORY = 4;

export class WaitingList<T> {
  readonly #entries = new Map<string, Entry<T>>();
  readonly #options: WaitingOptions;
  readonly #expired: (entry: Entry<T>) => void;
  #timer: NodeJS.Timeout | undefined;
  #tick = 0;
  /**
   * Tick from which on no twin can be under way of a flow that this list does not know. At first that is a timeout away: a
   * process that listened here before may hold the first connection of a client whose second comes to us, if the client
   * began both before we listened; it gives a pending one up well within the timeout.
   */
  #completeFrom = TICKS + 1;

  constructor(options: WaitingOptions, expired: (entry: Entry<T>) => void) {
    this.#options = options;
    this.#expired = expired;
    this.#start();
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Nothing that could still have a twin under way has been dropped from the memory. */
  get complete(): boolean {
    return this.#tick >= this.#completeFrom;
  }

  get(key: string): Entry<T> | undefined {
    return this.#entries.get(key);
  }

  add(key: string, first: Entry<T>['first'], flow: T): Entry<T> {
    this.#start();
    const before = this.#entries.get(key);
    if (before !== undefined) this.#finish(before);
    this.#entries.delete(key);
    if (this.#entries.size >= this.#options.entries) {
      const oldest = this.#entries.values().next().value as Entry<T>;
      this.#finish(oldest);
      this.#entries.delete(oldest.key);
      this.#completeFrom = this.#tick + TICKS * (MEMORY + 1) + 1; // one dropped for want of room
    }
    const entry: Entry<T> = { key, state: 'waiting', first, flow, until: this.#tick + TICKS };
    this.#entries.set(key, entry);
    return entry;
  }

  /** The flow is complete, or over: it no longer waits, but is remembered. */
  settle(entry: Entry<T>, state: 'paired' | 'over'): void {
    entry.state = state;
    entry.flow = undefined;
  }

  #finish(entry: Entry<T>): void {
    if (entry.state !== 'waiting') return;
    entry.state = 'over';
    this.#expired(entry);
    entry.flow = undefined;
  }

  #start(): void {
    if (this.#timer !== undefined) return;
    this.#timer = setInterval(() => this.#advance(), Math.max(1, this.#options.timeout / TICKS));
    this.#timer.unref();
  }

  #advance(): void {
    const tick = ++this.#tick;
    for (const entry of this.#entries.values()) {
      // Insertion order is time order: what follows is younger.
      if (entry.until > tick) break;
      this.#finish(entry);
      if (entry.until + TICKS * MEMORY <= tick) this.#entries.delete(entry.key);
    }
    if (this.#entries.size === 0 && this.complete) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
  }

  /** Ends every wait and forgets everything. */
  clear(): void {
    for (const entry of this.#entries.values()) this.#finish(entry);
    this.#entries.clear();
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
