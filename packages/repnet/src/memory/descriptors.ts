/** Descriptors of this process: a second connection takes none that a first might need. */
import { readFileSync } from 'node:fs';

/** Second connections are made while the process uses less than this share of its descriptors. */
const SHARE = 1 / 3;

let most: number | undefined;

/** The soft limit of descriptors; Infinity where the system does not tell it. */
function limit(): number {
  try {
    const told = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'latin1'));
    return told === null ? Number.POSITIVE_INFINITY : Number(told[1]);
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}

/** Returns whether a second connection that was given descriptor `fd`, the lowest that was free, is too much. */
export function isScarce(fd: number | undefined): boolean {
  most ??= SHARE * limit();
  return fd !== undefined && fd > most;
}
