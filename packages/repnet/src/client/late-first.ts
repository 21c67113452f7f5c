/**
 * The first connection of a flow that its application has closed before it was established: carries what the application had written, and
 * the end, should the second fail under them. What it brings is dropped: nobody reads it any more.
 */
import type { Leg, LegSink } from '../flow/leg.js';
import { endLinger, type Linger, startLinger } from '../flow/linger.js';
import type { Archive } from '../memory/archive.js';

export class LateFirst implements LegSink {
  readonly #leg: Leg;
  #linger: Linger | undefined;

  constructor(leg: Leg, archive: Archive) {
    this.#leg = leg.unref();
    leg.sink = this;
    this.#linger = startLinger(() => this.close());
    leg.send(archive.parts, (error) => {
      archive.drop();
      if (error) leg.destroy(error);
    });
    leg.finish(() => {});
    leg.resumeReading();
  }

  legData(): boolean {
    return true;
  }
  legFin(): void {
    this.close();
  }
  legLost(): void {
    this.#over();
  }

  /** The second has brought everything, or the server has ended this one. */
  close(): void {
    this.#over();
    if (!this.#leg.lost) this.#leg.close();
  }

  #over(): void {
    if (this.#linger !== undefined) endLinger(this.#linger);
    this.#linger = undefined;
  }
}
