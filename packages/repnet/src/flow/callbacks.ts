/**
 * When the callbacks of writes and of the end of a stream are called, and in which async context.
 */
import { AsyncResource } from 'node:async_hooks';
import { patientTimeout } from './waits.js';

export type Callback = (error?: Error | null) => void;

/**
 * Calls back once, in the async context of its maker, whatever event the call comes from: a timer,
 * a report of the peer's, another request. A call before `leave` is in that context already and
 * costs nothing.
 */
export class InContext {
  readonly #done: Callback;
  #called = false;
  #context: AsyncResource | undefined;

  constructor(done: Callback) {
    this.#done = done;
  }

  readonly callback: Callback = (error) => {
    this.#called = true;
    if (this.#context === undefined) this.#done(error);
    else this.#context.runInAsyncScope(this.#done, undefined, error);
  };

  /** The maker returns: keeps its context for a later callback. */
  leave(): void {
    if (!this.#called) this.#context = new AsyncResource('REPNETWRITE');
  }
}

/**
 * Calls back at the first success, or when all writes have failed, but not before `begun`: a write
 * may succeed at once, and the application's next one must not reach a copy before this one has.
 */
export class FirstOf {
  /** The callback has not been called, and no known outcome calls it. */
  pending = true;
  readonly #done: Callback;
  /** Number of writes; 0 while not all are begun. */
  #writes = 0;
  #failures = 0;
  #error: Error | null | undefined;

  constructor(done: Callback) {
    this.#done = done;
  }

  /** The outcome of one of the writes. */
  readonly callback: Callback = (error) => {
    if (!this.pending) return;
    this.#error = error;
    if (error && (++this.#failures < this.#writes || this.#writes === 0)) return;
    this.pending = false;
    if (this.#writes > 0) this.#done(error);
  };

  /** There are `count` writes; called again with a larger number if there is one more. */
  begun(count: number): void {
    this.#writes = count;
    if (this.pending && this.#failures >= count) this.pending = false;
    if (!this.pending) this.#done(this.#error);
  }
}

/**
 * Returns a callback for the two parts of a write: calls `done` when both have succeeded, or when
 * one fails.
 */
export function onceBoth(done: Callback): Callback {
  let parts = 2;
  return (error) => {
    if (parts === 0) return;
    parts = error ? 0 : parts - 1;
    if (parts === 0) done(error);
  };
}

/**
 * Bytes that may be lost with the first connection: the second was not sent them, and the peer has
 * not confirmed them. The end of the stream has succeeded when the peer does.
 */
export class Doubt {
  /** Everything below this offset is in doubt; -1: nothing is. */
  #below = -1;
  #end: { done: Callback; timer: NodeJS.Timeout } | undefined;

  /** The first connection is lost with bytes below `offset`. */
  arise(offset: number): void {
    this.#below = offset;
  }

  /** The peer has everything below `offset`. */
  received(offset: number): void {
    if (offset >= this.#below) this.#settle();
  }

  /**
   * Calls `done` when nothing is in doubt, or a peer of an earlier version, which confirms nothing,
   * has been silent for `patience` ms. A peer that misses bytes resets the flow.
   */
  whenSettled(done: Callback, patience: number): void {
    if (this.#below < 0) return done();
    // Keeps the process alive, which a connection that is read to its end does not.
    const timer = patientTimeout(() => this.#end?.timer === timer && this.#settle(), patience).ref();
    this.#end = { done, timer };
  }

  #settle(): void {
    this.#below = -1;
    this.close();
  }

  /** The flow is over: settles the wait. */
  close(): void {
    const end = this.#end;
    if (end === undefined) return;
    this.#end = undefined;
    clearTimeout(end.timer);
    end.done();
  }
}
