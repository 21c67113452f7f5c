/**
 * The waiting list of a server (RepNet paper, III-D), and its memory of pairs.
 *
 * A flow is listed by its client's address and port when its first connection arrives. It waits for
 * the other until the timeout. It is remembered afterwards, also when it has ended, for as long as
 * the other connection could come: a connection that cannot be placed is refused, never taken for a
 * new flow. Time is counted in ticks of one timer, so that a process that was suspended does not
 * forget flows that are still in its accept queue.
 */
import { PairMemory } from './pair-memory.js';
import { TidyMap } from './tidy-map.js';

export type EntryState = 'waiting' | 'paired' | 'over';

export interface Entry<T> {
  readonly key: string;
  state: EntryState;
  /** The connection that came first. */
  readonly first: 'primary' | 'replica';
  flow: T | undefined;
  /** Tick at which it was listed. */
  readonly began: number;
  /** Tick at which the wait is over. */
  until: number;
  /**
   * Tick up to which a first connection is taken for the flow's: a timeout after the client has
   * given up a pending one. The last handshake packets of a connection that the client takes for
   * established may be lost, and come repeated.
   */
  awaited: number;
  /** Six bits of the flow's token; 0 if the token is not known. */
  mark: number;
}

/** The fields of a hello that concern the waiting list. */
interface Said {
  token: Buffer;
  /** Milliseconds. */
  patience: number;
}

/** Returns six bits of a token, which two flows share once in 63 times. */
function markOf(said: Said | undefined): number {
  return said === undefined ? 0 : ((said.token[0] as number) % 63) + 1;
}

export interface WaitingOptions {
  /** Milliseconds. */
  timeout: number;
  /** The most entries, waiting and remembered. */
  entries: number;
}

const TICKS = 4;
/** Remembered for at least this many timeouts after the wait. */
const MEMORY = 4;

/** Values in memory: two bits, and above them the mark. */
const REPLICA_FIRST = 1;
const PAIRED = 2;
const MARK = 2;

export class WaitingList<T> {
  readonly #waiting = new TidyMap<string, Entry<T>>();
  readonly #remembered = new PairMemory(MEMORY + 1);
  /** Flows that are over and whose first connection may be under way. */
  readonly #awaited = new TidyMap<string, Entry<T>>();
  /** Number of waiting flows that began with their second connection. */
  #headless = 0;
  readonly #options: WaitingOptions;
  readonly #expired: (entry: Entry<T>) => void;
  readonly #blank: (flow: T) => boolean;
  #timer: NodeJS.Timeout | undefined;
  #tick = 0;
  /**
   * Tick from which on no connection of a flow unknown to this list can be under way. At first that
   * is a timeout away: a process that listened here before may hold the first connection of a
   * client whose second comes to us. The client gives up a pending connection well within the
   * timeout.
   */
  #completeFrom = TICKS + 1;

  /**
   * `blank`: returns whether nothing has come of the flow but a hello, and its connection is gone.
   */
  constructor(
    options: WaitingOptions,
    expired: (entry: Entry<T>) => void,
    blank: (flow: T) => boolean = () => false,
  ) {
    this.#options = options;
    this.#expired = expired;
    this.#blank = blank;
    this.#start();
  }

  get size(): number {
    return this.#waiting.size + this.#remembered.size + this.#awaited.size;
  }

  /** Returns whether a flow waits for its first connection. */
  get awaits(): boolean {
    return this.#headless > 0 || this.#awaited.size > 0;
  }

  get(key: string): Entry<T> | undefined {
    const waiting = this.#waiting.get(key) ?? this.#awaited.get(key);
    if (waiting !== undefined) return waiting;
    const remembered = this.#remembered.get(key);
    if (remembered === undefined) return undefined;
    return {
      key,
      state: (remembered & PAIRED) !== 0 ? 'paired' : 'over',
      first: (remembered & REPLICA_FIRST) !== 0 ? 'replica' : 'primary',
      flow: undefined,
      began: this.#tick,
      until: this.#tick,
      awaited: this.#tick,
      mark: remembered >> MARK,
    };
  }

  /** Returns the flow that waits under this key. */
  waiting(key: string): Entry<T> | undefined {
    return this.#waiting.get(key);
  }

  /**
   * Returns the flow, begun with its second connection, to which a first connection that comes now
   * belongs. Later, a connection from the same port is another flow's.
   */
  awaited(key: string): Entry<T> | undefined {
    if (!this.awaits) return undefined;
    const entry = this.#waiting.get(key) ?? this.#awaited.get(key);
    return entry?.first === 'replica' && this.#tick < entry.awaited ? entry : undefined;
  }

  /** Returns whether a hello is of a later flow from the same port than the remembered one. */
  isOther(entry: Entry<T>, said: Said): boolean {
    return entry.state !== 'waiting' && entry.mark !== 0 && entry.mark !== markOf(said);
  }

  /**
   * Returns whether the flow began longer ago than its client waits for its second connection: a
   * hello that comes now was held up, or is another flow's.
   */
  outlasts({ began }: Entry<T>, { patience }: Said): boolean {
    return (this.#tick - began - 1) * this.#options.timeout >= TICKS * patience;
  }

  /**
   * Returns whether no first connection can have been forgotten, or have gone to an earlier
   * process, if its client begins the second within `patience` milliseconds.
   */
  covers(patience: number): boolean {
    const timeouts = patience / this.#options.timeout;
    return timeouts <= MEMORY && this.#tick >= this.#completeFrom + TICKS * Math.max(0, timeouts - 1);
  }

  /** Lists a flow. `said`: by the hello with which it began, if it began with one. */
  add(key: string, first: Entry<T>['first'], flow: T, said?: Said): Entry<T> {
    this.#start();
    const before = this.#waiting.get(key);
    if (before !== undefined) this.#expire(before);
    if (this.size >= this.#options.entries) this.#makeRoom();
    this.#awaited.delete(key);
    if (first === 'replica') this.#headless++;
    const tick = this.#tick;
    // Whatever a client says, it is waited for no longer than a flow is remembered.
    const timeouts = Math.min((said?.patience ?? 0) / this.#options.timeout, MEMORY);
    const awaited = tick + TICKS + Math.ceil(TICKS * timeouts) + 1;
    const mark = markOf(said);
    // A first connection is taken for its flow's for longer than a second would be waited for, so
    // the wait is as long.
    const until = first === 'replica' && said !== undefined ? awaited : tick + TICKS + 1;
    const entry: Entry<T> = { key, state: 'waiting', first, flow, began: tick, until, awaited, mark };
    this.#waiting.set(key, entry);
    return entry;
  }

  #makeRoom(): void {
    const awaited = this.#awaited.oldest;
    if (this.#remembered.size > 0) this.#remembered.forget();
    else if (awaited !== undefined) this.#awaited.delete(awaited);
    else {
      const oldest = this.#waiting.get(this.#waiting.oldest as string) as Entry<T>;
      this.#end(oldest);
      this.#delete(oldest);
    }
    this.#completeFrom = this.#tick + TICKS * (MEMORY + 1) + 1; // something dropped for want of room
  }

  /** A flow has begun that is not listed here. */
  miss(): void {
    this.#start();
    this.#completeFrom = Math.max(this.#completeFrom, this.#tick + TICKS + 1);
  }

  /** The flow is complete, or over: it is remembered, and no longer waits. */
  settle(entry: Entry<T>, state: 'paired' | 'over', said?: Said): void {
    entry.state = state;
    entry.flow = undefined;
    if (said !== undefined) entry.mark = markOf(said);
    // Another flow may have taken the key since.
    if (this.#waiting.get(entry.key) !== entry) return;
    this.#delete(entry);
    if (entry.first === 'replica' && state === 'over') {
      if (this.#tick < entry.awaited) this.#awaited.set(entry.key, entry);
      return;
    }
    this.#remembered.set(
      entry.key,
      (entry.first === 'replica' ? REPLICA_FIRST : 0) |
        (state === 'paired' ? PAIRED : 0) |
        (entry.mark << MARK),
    );
  }

  #delete(entry: Entry<T>): void {
    this.#waiting.delete(entry.key);
    if (entry.first === 'replica') this.#headless--;
  }

  /** The wait is over, and no connection has come. */
  #expire(entry: Entry<T>): void {
    const { flow } = entry;
    this.#end(entry);
    // The client has given up the second before a byte was on it, and perhaps not the first.
    const blank = flow !== undefined && this.#blank(flow);
    if (blank && this.#waiting.get(entry.key) === entry) this.#delete(entry);
    else this.settle(entry, 'over');
  }

  #end(entry: Entry<T>): void {
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
    for (const entry of this.#waiting.values()) {
      if (entry.until <= tick) this.#expire(entry);
    }
    for (const [key, { awaited }] of this.#awaited.entries()) if (awaited <= tick) this.#awaited.delete(key);
    if (tick % TICKS === 0) this.#remembered.age();
    if (this.size === 0 && this.covers(MEMORY * this.#options.timeout)) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
  }

  /** Ends every wait and forgets everything. */
  clear(): void {
    for (const entry of this.#waiting.values()) this.#end(entry);
    this.#waiting.clear();
    this.#headless = 0;
    this.#remembered.clear();
    this.#awaited.clear();
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
