/**
 * Flow-size distributions as two-column text: size, cumulative probability. The first point is an
 * atom (it holds its own probability), repeated sizes are atoms too, and the distribution is linear
 * between points, as in the flow generators of the pFabric lineage. `#` starts a comment.
 */
import { UsageError } from 'repnet-cli/units';

export interface CdfPoint {
  /** Bytes. */
  readonly bytes: number;
  /** Probability that a flow is at most this long. */
  readonly probability: number;
}

export interface FlowSizes {
  readonly points: readonly CdfPoint[];
  /** Mean flow size in bytes, exact for the piecewise-linear distribution. */
  readonly mean: number;
  /** Flow size in whole bytes (at least 1) for a uniform draw `u` in [0, 1). */
  sample(u: number): number;
}

/**
 * Parse a table whose sizes are in units of `unit` bytes (1 for bytes, 1000 for KB, the MSS for
 * packets).
 * @throws UsageError ERR_CDF naming file and line.
 */
export function parseCdf(text: string, file: string, unit = 1): FlowSizes {
  const points: CdfPoint[] = [];
  text.split(/\r?\n/).forEach((raw, index) => {
    const line = raw.replace(/#.*/, '').trim();
    if (line === '') return;
    const where = `${file}:${index + 1}`;
    const columns = line.split(/[\s,]+/);
    const [size, probability] = columns.map(Number) as [number, number];
    if (columns.length !== 2 || !Number.isFinite(size) || !Number.isFinite(probability)) {
      throw new UsageError('ERR_CDF', `${where}: '${line}' is not 'size probability' (two numbers)`);
    }
    const last = points.at(-1);
    if (size < 0 || probability < 0 || probability > 1) {
      throw new UsageError(
        'ERR_CDF',
        `${where}: sizes are at least 0 and probabilities between 0 and 1, got '${line}'`,
      );
    }
    if (last !== undefined && (size * unit < last.bytes || probability < last.probability)) {
      throw new UsageError(
        'ERR_CDF',
        `${where}: both columns must not fall from line to line, got '${line}'`,
      );
    }
    points.push({ bytes: size * unit, probability });
  });
  if (points.length === 0)
    throw new UsageError('ERR_CDF', `${file}: no points; expected lines of 'size probability'`);
  if (points.at(-1)!.probability !== 1) {
    throw new UsageError(
      'ERR_CDF',
      `${file}: the last probability is ${points.at(-1)!.probability}; the table must end at 1`,
    );
  }
  return flowSizes(points);
}

/** Every flow of one size. */
export function fixedSize(bytes: number): FlowSizes {
  return flowSizes([{ bytes, probability: 1 }]);
}

function flowSizes(points: readonly CdfPoint[]): FlowSizes {
  let mean = points[0]!.bytes * points[0]!.probability;
  for (let i = 1; i < points.length; i++) {
    const [low, high] = [points[i - 1]!, points[i]!];
    mean += ((low.bytes + high.bytes) / 2) * (high.probability - low.probability);
  }
  const sample = (u: number): number => {
    let below = 0;
    let above = points.length - 1;
    while (below < above) {
      const middle = (below + above) >> 1;
      if (points[middle]!.probability > u) above = middle;
      else below = middle + 1;
    }
    const high = points[below]!;
    const low = points[below - 1];
    if (low === undefined) return Math.max(1, Math.round(high.bytes));
    const share = (u - low.probability) / (high.probability - low.probability);
    return Math.max(1, Math.round(low.bytes + share * (high.bytes - low.bytes)));
  };
  return { points, mean, sample };
}
