/**
 * What the second connection of a client's flow is worth: whether it brought bytes of a reply first, and by how much sooner. That is
 * measured as long as both connections carry the reply: from the moment when the second is ahead to that when the first has brought the
 * same bytes. A first connection that never does, since the flow is over or it has failed, would have taken longer: so what is counted is a
 * lower bound.
 */
import { performance } from 'node:perf_hooks';
import { counters } from '../stats.js';

export class Gain {
  #won = false;
  /** The first connection has to reach this offset; -1: it is not behind. */
  #offset = -1;
  #since = 0;

  /** The second connection has brought bytes up to `offset`, which the first will bring, too, if `doubled`. */
  ahead(offset: number, doubled: boolean): void {
    if (!this.#won) counters.copiesWon++;
    this.#won = true;
    if (!doubled || this.#offset >= 0) return;
    this.#offset = offset;
    this.#since = performance.now();
  }

  /** The first connection has brought bytes up to `offset`. */
  reached(offset: number): void {
    if (this.#offset >= 0 && offset >= this.#offset) this.over();
  }

  /** Nothing more is to be learnt: the first connection has caught up, or never will. */
  over(): void {
    if (this.#offset < 0) return;
    counters.timeSaved += performance.now() - this.#since;
    this.#offset = -1;
  }
}
