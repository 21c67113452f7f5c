/**
 * Source ports for pairs of connections. Both are bound explicitly (SO_REUSEADDR lets two connected sockets share a port),
 * so the port has to be chosen here rather than by the kernel: the ephemeral range is walked by a stride coprime to its
 * size from a random start, which reuses a port as late as possible.
 */
import { randomInt } from 'node:crypto';
import { readFileSync } from 'node:fs';

function ephemeralRange(): [number, number] {
  try {
    const [low = 0, high = 0] = readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'latin1')
      .trim()
      .split(/\s+/)
      .map(Number);
    if (low >= 1024 && high > low) return [low, high];
  } catch {
    // Not Linux: the range of RFC 6335.
  }
  return [49152, 65535];
}

let low = 0;
let size = 0;
let at = 0;
const STRIDE = 7919; // a prime longer than no range's factor: coprime to any range it does not divide

export function nextPort(): number {
  if (size === 0) {
    const [from, to] = ephemeralRange();
    low = from;
    size = to - from + 1;
    if (size % STRIDE === 0) size--;
    at = randomInt(size);
  }
  at = (at + STRIDE) % size;
  return low + at;
}
