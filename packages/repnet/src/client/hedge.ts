/**
 * Hedging: the second connection begins when the first has brought nothing for `copyDelay`. With
 * `copyDelay: 'p95'` the delay follows recent flows to the same destination. A time is what the
 * second connection waits for (`hedgeOn`): to the handshake, or with RepFlow to the first byte of
 * the reply. Where the second connection brought it, the first took longer than the delay: the time
 * counted is on the right side of the quantile, and hedging does not shorten its own delay.
 */

import { Quantiles } from '../memory/quantiles.js';
import { TidyMap } from '../memory/tidy-map.js';
import type { DialTarget } from '../socket-internals.js';
import { peerKey } from './peers.js';

/** The wait of one flow. */
export class Hedge {
  readonly #target: DialTarget;
  #timer: NodeJS.Timeout | undefined;
  /** When the wait began. */
  #begun = 0;
  /** The delay is over: the second connection may begin. */
  due = false;

  constructor(target: DialTarget) {
    this.#target = target;
  }

  /** The first connection begins; `due` is called when its time is over. */
  begin(due: () => void): void {
    this.#begun = performance.now();
    this.due = false;
    this.#timer = setTimeout(() => {
      this.due = true;
      due();
    }, this.#target.replication.copyDelay);
    this.#timer.unref();
  }

  /** The handshake or the first byte that it waits for is there. */
  answered(): void {
    noteTime(this.#target, this.#begun);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}

/** Flows to a destination before there is a quantile, and flows beyond it. */
const FEW = 30;
const BEYOND = 1;
/** Destinations remembered, about 1 KiB each; the least recently used one is forgotten first. */
const MOST_DESTINATIONS = 1024;

const times = new TidyMap<string, Quantiles>();

function keyOf({ mode, net, replication }: DialTarget): string {
  return `${mode}|${replication.hedgeOn}|${peerKey(net.host, net.port, replication.replicaPort)}`;
}

/** Sets the target's delay in milliseconds, if it follows a quantile and enough flows were seen. */
export function chooseDelay(target: DialTarget): void {
  const { quantile } = target.replication;
  if (quantile === undefined) return;
  const seen = times.get(keyOf(target));
  // 1 - 0.999 is not quite 0.001.
  if (seen === undefined || seen.size < Math.max(FEW, Math.floor(BEYOND / (1 - quantile)))) return;
  // Timers know whole milliseconds, and 0 would be no delay at all.
  target.replication.copyDelay = Math.max(1, Math.ceil(seen.at(quantile)));
}

/**
 * The flow has what the second connection waits for. `begun`: when its wait began, by
 * `performance.now()`.
 */
export function noteTime(target: DialTarget, begun: number): void {
  if (target.replication.quantile === undefined) return;
  const key = keyOf(target);
  let seen = times.get(key);
  if (seen === undefined) {
    if (times.size >= MOST_DESTINATIONS) times.delete(times.oldest as string);
    seen = new Quantiles();
    times.set(key, seen);
  } else if (times.size >= MOST_DESTINATIONS) {
    // In order of use, which matters only if there is no room.
    times.delete(key);
    times.set(key, seen);
  }
  seen.add(performance.now() - begun);
}

/** For tests: as if no flow had been seen. */
export function forgetTimes(): void {
  times.clear();
}
