/**
 * Source ports for pairs of connections. Both are bound explicitly (SO_REUSEADDR lets two connected
 * sockets share a port), so the port has to be chosen here rather than by the kernel: every other
 * port of the ephemeral range, walked by a stride coprime to their number from a random start,
 * which reuses a port as late as possible. Linux gives connections it binds itself the ports of the
 * other parity first; those may not be shared, and would collide.
 */
import { randomInt } from 'node:crypto';
import { readFileSync } from 'node:fs';

/** The ports that the system chooses from; undefined where it does not tell. */
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

/** The range that the system told when it was first asked; of RFC 6335 where it does not tell. */
function ephemeralRange(): [number, number] {
  if (range === null) range = toldRange();
  return range ?? [49152, 65535];
}

/** Whether the system may choose `port` for a connection's own. */
export function isEphemeral(port: number): boolean {
  if (range === null) range = toldRange();
  return range === undefined || (port >= range[0] && port <= range[1]);
}

let first = 0;
let size = 0;
let at = 0;
const STRIDE = 7919; // a prime longer than no range's factor: coprime to any range it does not divide

/**
 * `except`: the ports that the flow is to go to. From one of those a connection to this host would
 * be one to itself, where nobody listens.
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
