/**
 * Source ports for pairs of connections. Both connections are bound explicitly (SO_REUSEADDR lets
 * two connected sockets share a port), so the port is chosen here and not by the kernel. Every
 * other port of the ephemeral range is used, in strides coprime to their number from a random
 * start, which reuses a port as late as possible. Linux takes ports of the other parity first for
 * connections that it binds itself; those may not be shared, and would collide.
 */
import { randomInt } from 'node:crypto';
import { readFileSync } from 'node:fs';

/** Returns the range from which the system chooses ports; undefined if it does not report it. */
function toldRange(): [number, number] | undefined {
  try {
    const [low = 0, high = 0] = readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'latin1')
      .trim()
      .split(/\s+/)
      .map(Number);
    if (low >= 1024 && high > low) return [low, high];
  } catch {
    // Not Linux.
  }
  return undefined;
}

let range: [number, number] | undefined | null = null;

/** Returns the range that the system reported when it was first asked, or that of RFC 6335. */
function ephemeralRange(): [number, number] {
  if (range === null) range = toldRange();
  return range ?? [49152, 65535];
}

/** Returns whether the system may choose `port` for a connection's source. */
export function isEphemeral(port: number): boolean {
  if (range === null) range = toldRange();
  return range === undefined || (port >= range[0] && port <= range[1]);
}

let first = 0;
let size = 0;
let at = 0;
const STRIDE = 7919; // a prime longer than no range's factor: coprime to any range it does not divide

/**
 * Returns a source port. `except`: the destination ports of the flow, from which a connection to
 * this host would be one to itself.
 */
export function nextPort(except: readonly number[] = []): number {
  if (size === 0) {
    const [low, high] = ephemeralRange();
    first = low + 1;
    size = (high - low + 1) >> 1;
    if (size % STRIDE === 0) size--;
    at = randomInt(size);
  }
  let port: number;
  do {
    at = (at + STRIDE) % size;
    port = first + 2 * at;
  } while (except.includes(port));
  return port;
}
