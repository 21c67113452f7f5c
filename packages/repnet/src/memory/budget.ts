/**
 * The replication budget of the process: extra bytes and extra connections, each at most a fraction
 * of the unreplicated ones. Over budget a flow goes without its copy. In any stretch of time the
 * extra ones are at most that fraction and a burst, however slow or few flows have become.
 */

import { readFileSync } from 'node:fs';
import { defaults } from '../options.js';
import { counters } from '../stats.js';

/** Sums of fractions are not exact. */
const ROUNDING = 1e-9;

/** A token bucket: unreplicated bytes (or connections) fill it, extra ones empty it. */
class Allowance {
  /** Unreplicated ones that count as seen at the beginning. */
  readonly #least: number;
  readonly #burst: number;
  #seen = 0;
  /** Extra ones that may be made now; undefined: those of the beginning. */
  #tokens: number | undefined;

  constructor({ least, burst }: { least: number; burst: number }) {
    this.#least = least;
    this.#burst = burst;
  }

  add(n: number, fraction: number): void {
    this.#seen += n;
    // The first ones are counted already.
    const fresh = Math.min(n, this.#seen - this.#least);
    if (fresh <= 0 || fraction === Number.POSITIVE_INFINITY) return;
    const burst = Math.max(this.#burst, fraction * this.#least);
    this.#tokens = Math.min(burst, this.#left(fraction) + fraction * fresh);
  }

  #left(fraction: number): number {
    return this.#tokens ?? fraction * this.#least;
  }

  /** Takes `n` extra ones, unless the allowance is short of them. */
  take(n: number, fraction: number): boolean {
    if (fraction === Number.POSITIVE_INFINITY) return true;
    const left = this.#left(fraction);
    if (fraction === 0 || n > left + ROUNDING) {
      counters.overBudget++;
      return false;
    }
    this.#tokens = left - n;
    return true;
  }

  clear(): void {
    this.#seen = 0;
    this.#tokens = undefined;
  }
}

const bytes = new Allowance({ least: 1024 * 1024, burst: 256 * 1024 });
const connections = new Allowance({ least: 20, burst: 10 });

/** Counts `n` bytes that the application has written to a flow. */
export function carried(n: number): void {
  bytes.add(n, defaults.budget.bytes);
}

/** Takes `n` bytes that are sent a second time. Returns false if that would exceed the budget. */
export function takeBytes(n: number): boolean {
  if (n === 0) return true;
  if (!bytes.take(n, defaults.budget.bytes)) return false;
  counters.bytesDoubled += n;
  return true;
}

/** Counts a flow that its options would have replicated. */
export function begun(): void {
  connections.add(1, defaults.budget.connections);
}

/**
 * Takes a connection beside the one that a flow needs. Returns false if that would exceed the
 * budget.
 */
export function takeConnection(): boolean {
  return connections.take(1, defaults.budget.connections);
}

/** For tests: counts afresh. */
export function resetBudget(): void {
  bytes.clear();
  connections.clear();
}

/** Second connections are made while the process uses less than this share of its descriptors. */
const SHARE = 1 / 3;

let most: number | undefined;

/** Returns the soft limit of descriptors; Infinity if the system does not report it. */
function limit(): number {
  try {
    const told = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1'));
    return told === null ? Number.POSITIVE_INFINITY : Number(told[1]);
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}

/**
 * Returns whether descriptor `fd`, the lowest that was free, is too high for a second connection.
 */
export function isScarce(fd: number | undefined): boolean {
  most ??= SHARE * limit();
  return fd !== undefined && fd > most;
}
