/**
 * Bytes that may be lost with the first connection: the second was not sent them, and the peer has not confirmed that it has them. The
 * end of the stream has succeeded when it does.
 */
import type { Callback } from './callbacks.js';
import { patientTimeout } from './patience.js';

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
   * Calls `done` when nothing is in doubt, or a peer of an earlier version, which confirms nothing, has been silent for `patience` ms. A
   * peer that misses bytes resets the flow.
   */
  whenSettled(done: Callback, patience: number): void {
    if (this.#below < 0) return done();
    // A connection that is read to its end keeps no process.
    const timer = patientTimeout(() => this.#end?.timer === timer && this.#settle(), patience).ref();
    this.#end = { done, timer };
  }

  #settle(): void {
    this.#below = -1;
    this.close();
  }

  /** The flow is over: nobody waits any more. */
  close(): void {
    const end = this.#end;
    if (end === undefined) return;
    this.#end = undefined;
    clearTimeout(end.timer);
    end.done();
  }
}
