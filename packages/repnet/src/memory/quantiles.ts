/**
 * Quantiles of recent times, in bounded memory: a DDSketch (Masson, Rim and Lee, VLDB 2019) over a
 * window. Times are counted in buckets whose bounds grow by a factor, so that a quantile is within
 * `ERROR` of a time that was seen and has that rank.
 */

/** The relative error of a reported quantile, at most. */
export const ERROR = 0.05;
/**
 * The range of reported times in milliseconds. A time outside it is reported as the nearest bound.
 */
export const LEAST = 0.01;
export const MOST = 2 ** 31 - 1;
/** The latest times that count; up to as many before them do, too. */
export const WINDOW = 1024;

const GROWTH = (1 + ERROR) / (1 - ERROR);
const LOG_GROWTH = Math.log(GROWTH);
const BUCKETS = Math.ceil(Math.log(MOST / LEAST) / LOG_GROWTH) + 1;

/** Bucket n > 0 holds times above `LEAST * GROWTH ** (n - 1)` up to `LEAST * GROWTH ** n`. */
function bucketOf(milliseconds: number): number {
  const bucket = Math.ceil(Math.log(milliseconds / LEAST) / LOG_GROWTH);
  return Math.min(Math.max(bucket, 0), BUCKETS - 1);
}

/** Returns a time in the bucket, in proportion as far from its lower bound as from its upper. */
function timeOf(bucket: number): number {
  return bucket === 0 ? LEAST : (2 * LEAST * GROWTH ** bucket) / (GROWTH + 1);
}

export class Quantiles {
  #recent = new Uint16Array(BUCKETS);
  #before = new Uint16Array(BUCKETS);
  #ofRecent = 0;
  #ofBefore = 0;

  /** Number of times that count. */
  get size(): number {
    return this.#ofRecent + this.#ofBefore;
  }

  add(milliseconds: number): void {
    if (this.#ofRecent === WINDOW) {
      [this.#recent, this.#before] = [this.#before.fill(0), this.#recent];
      this.#ofBefore = WINDOW;
      this.#ofRecent = 0;
    }
    const bucket = bucketOf(milliseconds);
    this.#recent[bucket] = (this.#recent[bucket] as number) + 1;
    this.#ofRecent++;
  }

  /**
   * Returns the time in ms that the share `q` of those that count does not exceed; 0 if there are
   * none.
   */
  at(q: number): number {
    const rank = Math.max(1, Math.ceil(q * this.size));
    let below = 0;
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      below += (this.#recent[bucket] as number) + (this.#before[bucket] as number);
      if (below >= rank) return timeOf(bucket);
    }
    return 0;
  }
}
