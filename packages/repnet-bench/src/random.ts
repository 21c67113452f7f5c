/**
 * Deterministic random streams. Each stream is derived from (seed, entity, purpose), so that one
 * more draw in one place never shifts anybody else's draws: two modes with one seed see the same
 * flows.
 */
import { createHash } from 'node:crypto';

/**
 * A stream of uniform draws; `next()` is in [0, 1) with 53 random bits, `uint32()` in [0, 2^32).
 */
export interface RandomStream {
  next(): number;
  uint32(): number;
}

/**
 * The stream named by (seed, entity, purpose): sfc32 (C. Doty-Humphrey, PractRand) keyed by SHA-256
 * of the name. The same name gives the same draws on every machine.
 */
export function randomStream(seed: number, entity: string, purpose: string): RandomStream {
  const key = createHash('sha256').update(`${seed}\0${entity}\0${purpose}`).digest();
  let a = key.readInt32LE(0);
  let b = key.readInt32LE(4);
  let c = key.readInt32LE(8);
  let counter = 1;
  const uint32 = (): number => {
    const result = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + result) | 0;
    return result >>> 0;
  };
  for (let warmUp = 0; warmUp < 12; warmUp++) uint32();
  return {
    uint32,
    next: () => (uint32() * 0x200000 + (uint32() >>> 11)) / 0x20000000000000,
  };
}

/**
 * One exponential draw with the given mean (same unit as `mean`): the gaps of a Poisson process.
 */
export function exponential(stream: RandomStream, mean: number): number {
  return -Math.log1p(-stream.next()) * mean;
}
