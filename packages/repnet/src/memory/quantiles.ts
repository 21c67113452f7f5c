/**
 * Quantiles of the times seen last, in bounded memory: a DDSketch (Masson, Rim and Lee, VLDB 2019) over a window. Times are counted in buckets
 * whose bounds grow by a factor, so that the quantile told is within `ERROR` of a time that was seen and has that rank.
 */

/** What is told differs by at most this share from the true value. */
export const ERROR = 0.05;
/** Milliseconds: the bounds of what is told apart. Less is told as the least, more as the most. */
export const LEAST = 0.01;
export const MOST = 2 ** 31 - 1;
/** The last so many times count, and up to as many before them. */
export const WINDOW = 1024;

const GROWTH = (1 + ERROR) / (1 - ERROR);
const LOG_GROWTH = Math.log(GROWTH);
const BUCKETS = Math.ceil(Math.log(MOST / LEAST) / LOG_GROWTH) + 1;

/** Bucket n > 0 holds times above `LEAST * GROWTH ** (n - 1)` up to `LEAST * GROWTH ** n`. */
function bucketOf(milliseconds: number): number {
  const bucket = Math.ceil(Math.log(milliseconds / LEAST) / LOG_GROWTH);
  return Math.min(Math.max(bucket, 0), BUCKETS - 1);
}

/** As far from the lower bound as from the upper, in proportion. */
function timeOf(bucket: number): number {
  return bucket === 0 ? LEAST : (2 * LEAST * GROWTH ** bucket) / (GROWTH + 1);
}

export class Quantiles {
  #recent = new Uint16Array(BUCKETS);
  #before = new Uint16Array(BUCKETS);
  #ofRecent = 0;
  #ofBefore = 0;

  /** How many times count. */
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

  /** The time, ms, that the share `q` of those that count does not exceed; 0 if there are none. */
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
