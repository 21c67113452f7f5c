/** Statistics and sentences about completion times. */

/**
 * Returns the value that `share` of all values do not exceed, by nearest rank; undefined if there
 * is none. `sorted` ascends.
 */
export function percentile(sorted: ArrayLike<number>, share: number): number | undefined {
  const rank = Math.max(1, Math.ceil(share * sorted.length - 1e-9));
  return sorted[rank - 1];
}

/** Bins of equal width on a logarithmic axis. */
export interface Bins {
  from: number;
  to: number;
  counts: number[];
}

/**
 * Counts values in `count` bins between `from` and `to`. Values outside count in the first and the
 * last bin.
 */
export function histogram(values: ArrayLike<number>, from: number, to: number, count: number): Bins {
  const counts = new Array<number>(count).fill(0);
  const width = Math.log(to / from) / count;
  for (let at = 0; at < values.length; at++) {
    const bin = Math.floor(Math.log((values[at] as number) / from) / width);
    const inside = Math.min(count - 1, Math.max(0, bin));
    counts[inside] = (counts[inside] as number) + 1;
  }
  return { from, to, counts };
}

/** Formats a time with at most three digits. */
export function duration(ns: number): string {
  if (Number.isNaN(ns)) {
    return '–';
  }
  if (!Number.isFinite(ns)) {
    return 'not finished';
  }
  const [unit, size] = ns >= 1e9 ? ['s', 1e9] : ns >= 1e5 ? ['ms', 1e6] : ['µs', 1e3];
  const value = ns / size;
  const digits = value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return `${value.toFixed(digits)}\u00a0${unit}`;
}

/** The counters that every run has. */
const ORDINARY = new Set(['events', 'packet_hops', 'sent', 'delivered', 'in_flight', 'end_ns']);

/**
 * Returns the other counters of a run as a sentence: drops, pauses, elephants found. Empty if all
 * are zero.
 */
export function totals(name: string, counters: Readonly<Record<string, number>>): string {
  const counted = Object.entries(counters).filter(([key, number]) => number > 0 && !ORDINARY.has(key));
  const parts = counted.map(([key, number]) => `${key.replaceAll('_', ' ')} ${number.toLocaleString('en')}`);
  return parts.length === 0 ? '' : `${name}: ${parts.join(', ')}.`;
}

/** A scheme's name and its completion times. */
export interface SchemeTimes {
  name: string;
  /** In nanoseconds, ascending; infinity for an unfinished flow. */
  sorted: ArrayLike<number>;
}

/** Formats a factor. */
function times(factor: number): string {
  return `${factor.toFixed(factor < 10 ? 1 : 0)} times`;
}

/**
 * Returns sentences about two schemes: the typical flow, the tail, and the second scheme's tail.
 */
export function verdict(first: SchemeTimes, second: SchemeTimes | undefined): string {
  const [half, tail] = [percentile(first.sorted, 0.5), percentile(first.sorted, 0.99)];
  if (half === undefined || tail === undefined) {
    return 'No flow of this size has finished.';
  }
  const finishes = Number.isFinite(half);
  const typical = finishes
    ? `Under ${first.name}, half of the flows take less than ${duration(half)}.`
    : `Under ${first.name}, more than half of the flows do not finish.`;
  const slow = Number.isFinite(tail)
    ? tail / half < 1.5
      ? `One in a hundred takes ${duration(tail)} or more: there is hardly a tail.`
      : `But one in a hundred takes ${duration(tail)} or more, ${times(tail / half)} as long: that is the tail.`
    : 'But one in a hundred does not finish at all: that is the tail.';
  const sentences = finishes ? `${typical} ${slow}` : typical;
  const other = second && percentile(second.sorted, 0.99);
  if (second === undefined || other === undefined) {
    return sentences;
  }
  if (!Number.isFinite(other)) {
    const usual = Number.isFinite(percentile(second.sorted, 0.5));
    return `${sentences} Under ${second.name}, ${usual ? 'one in a hundred does' : 'more than half do'} not finish.`;
  }
  const ratio = other / tail;
  // There is no percentage relative to flows that do not finish.
  const difference = !Number.isFinite(tail)
    ? ''
    : ratio > 2
      ? `, ${times(ratio)} as long`
      : ratio > 1.02
        ? `, ${(100 * (ratio - 1)).toFixed(0)}\u00a0% more`
        : ratio < 0.98
          ? `, ${(100 * (1 - ratio)).toFixed(0)}\u00a0% less`
          : ', about the same';
  return `${sentences} Under ${second.name}, one in a hundred takes ${duration(other)} or more${difference}.`;
}
