/**
 * The replication budget of the process: extra bytes and extra connections, each at most a fraction of the unreplicated
 * ones. A small allowance keeps the first flows replicated before there is anything to take a fraction of.
 */
import { defaults } from '../options.js';

const BYTES_ALLOWANCE = 1024 * 1024;
const CONNECTIONS_ALLOWANCE = 16;

let bytesCarried = 0;
let bytesDoubled = 0;
let connectionsMade = 0;
let connectionsDoubled = 0;

export function carried(bytes: number): void {
  bytesCarried += bytes;
}

/** False: doubling `n` more bytes would exceed the budget. */
export function takeBytes(n: number): boolean {
  const { bytes } = defaults.budget;
  bytesCarried += n;
  if (
    bytes !== Number.POSITIVE_INFINITY &&
    bytesDoubled + n > bytes * bytesCarried + (bytes > 0 ? BYTES_ALLOWANCE : 0)
  )
    return false;
  bytesDoubled += n;
  return true;
}

/** Counts a flow; false: a second connection would exceed the budget. */
export function takeConnection(): boolean {
  const { connections } = defaults.budget;
  connectionsMade++;
  if (
    connections !== Number.POSITIVE_INFINITY &&
    connectionsDoubled + 1 > connections * connectionsMade + (connections > 0 ? CONNECTIONS_ALLOWANCE : 0)
  )
    return false;
  connectionsDoubled++;
  return true;
}

/** For tests: start counting afresh. */
export function resetBudget(): void {
  bytesCarried = bytesDoubled = connectionsMade = connectionsDoubled = 0;
}
