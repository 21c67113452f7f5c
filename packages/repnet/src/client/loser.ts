/**
 * The loser of a race to an unmodified server, if the system has established it: to that server it
 * is a client that says nothing. It is ended in order and read to the server's end. Closing it with
 * bytes unread would be a reset, and a server without an 'error' listener would end.
 */
import { Leg, type LegSink } from '../flow/leg.js';
import { endLinger, type Linger, startLinger } from '../flow/waits.js';
import type { Handle } from '../net-internals.js';
import type { Attempt, AttemptSink } from './attempt.js';

/** How a loser is closed: by RST, or in order. */
export type DropBy = 'rst' | 'fin';

/**
 * Gives up an attempt that has lost. If it is closed in order, a connection that the system has
 * established is read to the server's end.
 */
export function dropLoser(attempt: Attempt, by: DropBy): void {
  if (by === 'fin' && attempt.isEstablished) attempt.passTo(new Loser(attempt));
  else attempt.abandon(by === 'rst');
}

class Loser implements AttemptSink, LegSink {
  #linger: Linger | undefined;

  constructor(attempt: Attempt) {
    attempt.unref();
  }

  attemptOpen(attempt: Attempt, handle: Handle): void {
    const leg = new Leg(attempt.copy, this, handle).unref();
    this.#linger = startLinger(() => this.#over(leg));
    leg.finish(() => {});
  }

  attemptFailed(): void {}
  attemptEvent(): void {}

  /** Drops bytes. */
  legData(): boolean {
    return true;
  }

  legFin(leg: Leg): void {
    this.#over(leg);
  }

  legLost(leg: Leg): void {
    this.#over(leg);
  }

  #over(leg: Leg): void {
    if (this.#linger !== undefined) endLinger(this.#linger);
    this.#linger = undefined;
    leg.close();
  }
}
