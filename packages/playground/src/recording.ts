/** A recording of a run: its frames, and its flows once it has finished. */
import type { Result } from './engine.js';
import type { Frame } from './worker.js';

/** The flows that are shown. */
export type Sizes = 'small' | 'large' | 'all';

/** Returns a size in bytes: "100KB", "1MiB". */
export function bytesOf(size: unknown): number {
  const [, number, unit] = /^([\d.]+)\s*([KMGT]?i?B)$/.exec(String(size)) ?? [];
  const powers: Record<string, number> = { B: 0, K: 1, M: 2, G: 3, T: 4 };
  const base = unit?.includes('i') ? 1024 : 1000;
  return Number(number) * base ** (powers[unit?.[0] ?? 'B'] ?? 0);
}

export class Recording {
  readonly frames: Frame[] = [];
  result: Result | undefined;
  /** The bytes of the largest small flow. */
  private readonly small: number;

  constructor(small: number) {
    this.small = small;
  }

  /** The simulated time of the last frame, in nanoseconds. */
  get known(): number {
    return this.frames[this.frames.length - 1]?.now_ns ?? 0;
  }

  /** Returns the latest frame up to `now`; undefined before the first. */
  at(now: number): Frame | undefined {
    let [low, high] = [0, this.frames.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.frames[middle] as Frame).now_ns <= now) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return this.frames[low - 1];
  }

  /**
   * Returns the completion times in nanoseconds, ascending, of the flows that have finished by
   * `now`.
   */
  finished(now: number, sizes: Sizes): Float64Array {
    const times: number[] = [];
    for (const frame of this.frames) {
      if (frame.now_ns > now) {
        break;
      }
      for (const [, bytes, fct] of frame.finished) {
        if (this.counts(bytes, sizes)) {
          times.push(fct);
        }
      }
    }
    return Float64Array.from(times).sort();
  }

  /**
   * Returns the completion times of all flows, ascending, infinity for an unfinished one; undefined
   * before the run has finished.
   */
  final(sizes: Sizes): Float64Array | undefined {
    const flows = this.result?.tables.flows;
    const [bytes, fct] = [flows?.bytes, flows?.fct_ns];
    if (bytes === undefined || fct === undefined) {
      return undefined;
    }
    const times: number[] = [];
    for (let at = 0; at < bytes.cells.length; at++) {
      if (this.counts(Number(bytes.cells[at]), sizes)) {
        times.push(fct.valid?.[at] === 0 ? Number.POSITIVE_INFINITY : Number(fct.cells[at]));
      }
    }
    return Float64Array.from(times).sort();
  }

  private counts(bytes: number, sizes: Sizes): boolean {
    return sizes === 'all' || bytes <= this.small === (sizes === 'small');
  }
}
