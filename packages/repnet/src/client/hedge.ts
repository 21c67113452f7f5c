/** Hedged, the second connection begins when the first has had its time and brought nothing. */
import type { DialTarget } from '../socket-internals.js';
import { noteTime } from './hedge-delay.js';

export class Hedge {
  readonly #target: DialTarget;
  #timer: NodeJS.Timeout | undefined;
  /** When the wait began. */
  #begun = 0;
  /** It is time for the second connection. */
  due = false;

  constructor(target: DialTarget) {
    this.#target = target;
  }

  /** The first connection begins; `due` is called when its time is over. */
  begin(due: () => void): void {
    this.#begun = performance.now();
    this.due = false;
    this.#timer = setTimeout(() => {
      this.due = true;
      due();
    }, this.#target.replication.copyDelay);
    this.#timer.unref();
  }

  /** The handshake or the first byte that it waits for is there. */
  answered(): void {
    noteTime(this.#target, this.#begun);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}
