/**
 * The replication budget of the process: extra bytes and extra connections, each at most a fraction of the unreplicated
 * ones of late. What is suppressed is the copy, never the flow. Neither a quiet past nor a start is a licence: only the last flows and
 * bytes count, and at the beginning as if there had been a few.
 */
import { defaults } from '../options.js';
import { counters } from '../stats.js';

/** The parts of a window, of which the oldest is forgotten as a whole. */
const PARTS = 16;

/** How much there was of late, and how much of it was extra. */
class Window {
  readonly #part: number;
  readonly #least: number;
  readonly #all = new Float64Array(PARTS);
  readonly #extra = new Float64Array(PARTS);
  #at = 0;

  /** `size`: what counts as of late. `least`: it is taken for no less than this. */
  constructor({ size, least }: { size: number; least: number }) {
    this.#part = size / PARTS;
    this.#least = least;
  }

  add(n: number): void {
    if ((this.#all[this.#at] as number) >= this.#part) {
      this.#at = (this.#at + 1) % PARTS;
      this.#all[this.#at] = this.#extra[this.#at] = 0;
    }
    this.#all[this.#at] = (this.#all[this.#at] as number) + n;
  }

  /** Takes `n` extra ones, unless there would be more of them than `fraction` of all. */
  take(n: number, fraction: number): boolean {
    if (fraction !== Number.POSITIVE_INFINITY) {
      const most = fraction * Math.max(sum(this.#all), this.#least);
      if (sum(this.#extra) + n > most) {
        counters.overBudget++;
        return false;
      }
    }
    this.#extra[this.#at] = (this.#extra[this.#at] as number) + n;
    return true;
  }

  clear(): void {
    this.#all.fill(0);
    this.#extra.fill(0);
  }
}

function sum(parts: Float64Array): number {
  let total = 0;
  for (const part of parts) total += part;
  return total;
}

const bytes = new Window({ size: 16 * 1024 * 1024, least: 1024 * 1024 });
const connections = new Window({ size: 1024, least: 20 });

/** The application has written `n` bytes to a flow: what the extra ones are a fraction of. */
export function carried(n: number): void {
  bytes.add(n);
}

/** Takes `n` bytes that are to be sent a second time; false: that would exceed the budget. */
export function takeBytes(n: number): boolean {
  if (n === 0) return true;
  if (!bytes.take(n, defaults.budget.bytes)) return false;
  counters.bytesDoubled += n;
  return true;
}

/** The application has begun a flow that its options would have replicated. */
export function begun(): void {
  connections.add(1);
}

/** Takes a connection beside the one that a flow needs; false: that would exceed the budget. */
export function takeConnection(): boolean {
  return connections.take(1, defaults.budget.connections);
}

/** For tests: start counting afresh. */
export function resetBudget(): void {
  bytes.clear();
  connections.clear();
}
