/**
 * The replication budget of the process: extra bytes and extra connections, each at most a fraction of the unreplicated
 * ones. A small allowance keeps the first flows replicated before there is anything to take a fraction of.
 */
import { defaults } from '../options.js';
import { counters } from '../stats.js';

const BYTES_ALLOWANCE = 1024 * 1024;
const CONNECTIONS_ALLOWANCE = 16;

let bytesCarried = 0;
let bytesDoubled = 0;
let flowsBegun = 0;
let connectionsDoubled = 0;

/** The application has written `bytes` to a flow: what the extra ones are a fraction of. */
export function carried(bytes: number): void {
  bytesCarried += bytes;
}

/** Takes `n` bytes that are to be sent a second time; false: that would exceed the budget. */
export function takeBytes(n: number): boolean {
  const { bytes } = defaults.budget;
  if (n === 0) return true;
  if (exceeds(bytesDoubled + n, bytes, bytesCarried, BYTES_ALLOWANCE)) return false;
  bytesDoubled += n;
  counters.bytesDoubled += n;
  return true;
}

/** The application has begun a flow that its options would have replicated. */
export function begun(): void {
  flowsBegun++;
}

/** Takes a connection beside the one that a flow needs; false: that would exceed the budget. */
export function takeConnection(): boolean {
  const { connections } = defaults.budget;
  if (exceeds(connectionsDoubled + 1, connections, flowsBegun, CONNECTIONS_ALLOWANCE)) return false;
  connectionsDoubled++;
  return true;
}

function exceeds(extra: number, fraction: number, of: number, allowance: number): boolean {
  if (fraction === Number.POSITIVE_INFINITY || extra <= fraction * of + (fraction > 0 ? allowance : 0))
    return false;
  counters.overBudget++;
  return true;
}

/** For tests: start counting afresh. */
export function resetBudget(): void {
  bytesCarried = bytesDoubled = flowsBegun = connectionsDoubled = 0;
}
