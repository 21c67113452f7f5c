/**
 * The built-in comparison: a random share of the flows that could have copies goes without, and
 * both groups are timed alike, from `connect` to the first byte of the reply. Times since the start
 * are counted in buckets whose bounds grow by a factor.
 */

/** Half the width of a bucket, as a share of its time. */
const ERROR = 0.01;
const LOG_GROWTH = Math.log((1 + ERROR) / (1 - ERROR));
/** Milliseconds: the upper bound of the first bucket. */
const LEAST = 0.01;
/** Standard errors of a 95 % interval, and of two that hold together with at least 95 %. */
const Z = 1.96;
const Z_OF_TWO = 2.2414;

/**
 * Milliseconds: `change` is the difference with copies, negative where they are faster; `low` and
 * `high` bound it with 95 %.
 */
export interface Change {
  readonly change: number;
  readonly low: number;
  readonly high: number;
}

/** Times from `connect` to the first byte of the reply, in milliseconds. */
export interface Times {
  /** Flows that were answered. */
  readonly flows: number;
  /** Flows that were closed before a byte of the reply. */
  readonly unanswered: number;
  /** Sum of all times. */
  readonly milliseconds: number;
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  /**
   * The upper bound of each bucket, within 1 % of its times, and its flows; ascending, without
   * empty buckets.
   */
  readonly histogram: readonly (readonly [upTo: number, flows: number])[];
}

export interface Trial {
  readonly withCopies: Times;
  readonly without: Times;
  /** Undefined where there are too few flows to bound it. */
  readonly change: {
    readonly mean: Change | undefined;
    readonly p50: Change | undefined;
    readonly p95: Change | undefined;
    readonly p99: Change | undefined;
  };
}

/** A flow of the trial that has no reply yet. */
export interface Participant {
  readonly arm: Arm;
  /** When it was dialled, by `performance.now()`. */
  readonly begun: number;
}

export class Arm {
  readonly #buckets = new Map<number, number>();
  #flows = 0;
  #sum = 0;
  #squares = 0;
  unanswered = 0;

  add(milliseconds: number): void {
    const bucket = Math.max(0, Math.ceil(Math.log(milliseconds / LEAST) / LOG_GROWTH));
    this.#buckets.set(bucket, (this.#buckets.get(bucket) ?? 0) + 1);
    this.#flows++;
    this.#sum += milliseconds;
    this.#squares += milliseconds * milliseconds;
  }

  clear(): void {
    this.#buckets.clear();
    this.#flows = this.#sum = this.#squares = this.unanswered = 0;
  }

  get flows(): number {
    return this.#flows;
  }

  get mean(): number {
    return this.#sum / this.#flows;
  }

  /** Variance of the mean. */
  get variance(): number {
    const n = this.#flows;
    return Math.max(0, this.#squares / n - this.mean ** 2) / (n - 1);
  }

  get #sorted(): [number, number][] {
    return [...this.#buckets].sort(([a], [b]) => a - b);
  }

  /** Returns the time of this rank, from 1; 0 if there are no times. */
  #ofRank(rank: number): number {
    let below = 0;
    for (const [bucket, flows] of this.#sorted) {
      below += flows;
      if (below >= rank) return middleOf(bucket);
    }
    return 0;
  }

  at(q: number): number {
    return this.#ofRank(Math.max(1, Math.ceil(q * this.#flows)));
  }

  /**
   * Returns bounds of the quantile by order statistics, whatever the distribution; undefined if
   * there are too few times.
   */
  bounds(q: number): [low: number, high: number] | undefined {
    const spread = Z_OF_TWO * Math.sqrt(this.#flows * q * (1 - q));
    const low = Math.floor(q * this.#flows - spread);
    const high = Math.ceil(q * this.#flows + spread) + 1;
    return low < 1 || high > this.#flows ? undefined : [this.#ofRank(low), this.#ofRank(high)];
  }

  get times(): Times {
    return {
      flows: this.#flows,
      unanswered: this.unanswered,
      milliseconds: this.#sum,
      p50: this.at(0.5),
      p95: this.at(0.95),
      p99: this.at(0.99),
      histogram: this.#sorted.map(([bucket, flows]) => [LEAST * Math.exp(bucket * LOG_GROWTH), flows]),
    };
  }
}

function middleOf(bucket: number): number {
  return bucket === 0 ? LEAST : LEAST * Math.exp((bucket - 1) * LOG_GROWTH) * (1 + ERROR);
}

/** Returns the change of the mean (Welch). */
function changeOfMean(a: Arm, b: Arm): Change | undefined {
  if (a.flows < 2 || b.flows < 2) return undefined;
  const change = a.mean - b.mean;
  const margin = Z * Math.sqrt(a.variance + b.variance);
  return { change, low: change - margin, high: change + margin };
}

function changeOf(q: number, a: Arm, b: Arm): Change | undefined {
  const [ofA, ofB] = [a.bounds(q), b.bounds(q)];
  if (ofA === undefined || ofB === undefined) return undefined;
  return { change: a.at(q) - b.at(q), low: ofA[0] - ofB[1], high: ofA[1] - ofB[0] };
}

/** Compares two groups. */
export function compare(withCopies: Arm, without: Arm): Trial {
  return {
    withCopies: withCopies.times,
    without: without.times,
    change: {
      mean: changeOfMean(withCopies, without),
      p50: changeOf(0.5, withCopies, without),
      p95: changeOf(0.95, withCopies, without),
      p99: changeOf(0.99, withCopies, without),
    },
  };
}

const withCopies = new Arm();
const without = new Arm();

/** Draws the group of a flow that could have copies; `control` is the share that goes without. */
export function draw(control: number): Participant & { hasCopies: boolean } {
  const hasCopies = Math.random() >= control;
  return { arm: hasCopies ? withCopies : without, begun: performance.now(), hasCopies };
}

export function noteAnswered({ arm, begun }: Participant): void {
  arm.add(performance.now() - begun);
}

export function noteUnanswered({ arm }: Participant): void {
  arm.unanswered++;
}

export function trialNow(): Trial {
  return compare(withCopies, without);
}

export function resetTrial(): void {
  withCopies.clear();
  without.clear();
}
