/**
 * `copyDelay: 'p95'`: how long a second connection waits, by what flows to the same destination took of late. A time is what the second
 * connection waits for (`hedgeOn`): with RepFlow from the beginning to the first byte of the reply or to the handshake, with RepSYN to the handshake. Where
 * the second connection brought it, the first took longer than that, which is more than the delay: so what is counted lies on the right
 * side of the quantile, and hedging does not shorten its own delay.
 */

import { Quantiles } from '../memory/quantiles.js';
import { TidyMap } from '../memory/tidy-map.js';
import type { DialTarget } from '../socket-internals.js';
import { peerKey } from './peers.js';

/** Flows to a destination before there is a quantile, and so many beyond it. */
const FEW = 30;
const BEYOND = 1;
/** Destinations remembered, about 1 KiB each; beyond that the one whose last flow is the longest ago is forgotten. */
const MOST_DESTINATIONS = 1024;

const times = new TidyMap<string, Quantiles>();

function keyOf({ mode, net, replication }: DialTarget): string {
  return `${mode}|${replication.hedgeOn}|${peerKey(net.host, net.port, replication.replicaPort)}`;
}

/** Gives the target its delay in milliseconds, if it is to follow a quantile and enough flows were seen to tell it. */
export function chooseDelay(target: DialTarget): void {
  const { quantile } = target.replication;
  if (quantile === undefined) return;
  const seen = times.get(keyOf(target));
  // 1 - 0.999 is not quite 0.001.
  if (seen === undefined || seen.size < Math.max(FEW, Math.floor(BEYOND / (1 - quantile)))) return;
  // Timers know whole milliseconds, and 0 would be no delay at all.
  target.replication.copyDelay = Math.max(1, Math.ceil(seen.at(quantile)));
}

/** The flow, whose wait began at `begun` by `performance.now()`, has what the second connection waits for. */
export function noteTime(target: DialTarget, begun: number): void {
  if (target.replication.quantile === undefined) return;
  const key = keyOf(target);
  let seen = times.get(key);
  if (seen === undefined) {
    if (times.size >= MOST_DESTINATIONS) times.delete(times.oldest as string);
    seen = new Quantiles();
    times.set(key, seen);
  } else if (times.size >= MOST_DESTINATIONS) {
    // In order of use, which nobody asks for as long as there is room.
    times.delete(key);
    times.set(key, seen);
  }
  seen.add(performance.now() - begun);
}

/** For tests: as if no flow had been seen. */
export function forgetTimes(): void {
  times.clear();
}
