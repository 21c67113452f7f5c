/**
 * Counters of the process. `stats()` is a snapshot; diagnostics channels publish the same events
 * for each flow.
 */
import { channel } from 'node:diagnostics_channel';
import { resetTrial, type Trial, trialNow } from './trial.js';
import { VERSION } from './wire.js';

export interface Stats {
  /** Flows started with mode 'flow', 'syn', and plain, client side. */
  flowsFlow: number;
  flowsSyn: number;
  flowsPlain: number;
  /** Flows accepted, server side, and how many of them were paired with their second connection. */
  flowsAccepted: number;
  flowsPaired: number;
  /**
   * Bytes of paired flows by the copy that brought them first (that won them) and by direction: of
   * requests, received by the servers of this process, and of replies, received by its clients.
   */
  requestBytesWonByPrimary: number;
  requestBytesWonByReplica: number;
  replyBytesWonByPrimary: number;
  replyBytesWonByReplica: number;
  /** Bytes that arrived on a copy after the other had delivered them. */
  bytesDuplicate: number;
  /** Bytes sent a second time. */
  bytesDoubled: number;
  /**
   * Bytes that copies cost the network, as far as this process sees: `bytesDuplicate` and
   * `bytesDoubled` together.
   */
  bytesWasted: number;
  /** Second connections that clients of this process began. */
  copiesIssued: number;
  /**
   * Second connections that brought a byte of the reply first, or (RepSYN) were established first.
   * The others are pure cost. These may be cost, too, since two copies may slow each other down:
   * `trial` reports what copies gain.
   */
  copiesWon: number;
  /** RepSYN handshakes won by the first and by the second connection. */
  synWonByFirst: number;
  synWonBySecond: number;
  /** Second connections refused because their flow was unknown, over or given up. */
  lateTwins: number;
  /**
   * Second connections that came after the server had closed the flow, and brought its last bytes
   * from the archive.
   */
  lateServed: number;
  /**
   * Flows carried by one copy because the archive or threshold was exceeded before the second
   * connection came.
   */
  chosenEarly: number;
  /** Doubling stopped because a message outgrew the threshold, and begun again after a lull. */
  doublingStopped: number;
  doublingResumed: number;
  /** Copies given up because they failed or fell too far behind. */
  copiesFailed: number;
  /** Hellos that were not answered, or not by repnet. */
  foreignPeers: number;
  /** Source port collisions that were retried. */
  portRetries: number;
  /** Copies not made because the budget was spent. */
  overBudget: number;
  /** Flows joined with a peer of an earlier version of the wire format, at either end. */
  earlierPeers: number;
  /** Replica connections refused by the server: bad hello, address mismatch, limits. */
  refused: number;
  /** Flows with copies compared with the share `defaults.control` of flows without. */
  trial: Trial;
}

const zero: Omit<Stats, 'bytesWasted' | 'trial'> = {
  flowsFlow: 0,
  flowsSyn: 0,
  flowsPlain: 0,
  flowsAccepted: 0,
  flowsPaired: 0,
  requestBytesWonByPrimary: 0,
  requestBytesWonByReplica: 0,
  replyBytesWonByPrimary: 0,
  replyBytesWonByReplica: 0,
  bytesDuplicate: 0,
  bytesDoubled: 0,
  copiesIssued: 0,
  copiesWon: 0,
  synWonByFirst: 0,
  synWonBySecond: 0,
  lateTwins: 0,
  lateServed: 0,
  chosenEarly: 0,
  doublingStopped: 0,
  doublingResumed: 0,
  copiesFailed: 0,
  foreignPeers: 0,
  portRetries: 0,
  overBudget: 0,
  earlierPeers: 0,
  refused: 0,
};

/** Live counters, for the library; users call `stats()`. */
export const counters = { ...zero };

/** Returns all counters, and the trial, since the process started or since `resetStats`. */
export function stats(): Stats {
  return { ...counters, bytesWasted: counters.bytesDuplicate + counters.bytesDoubled, trial: trialNow() };
}

export function resetStats(): void {
  Object.assign(counters, zero);
  resetTrial();
}

/** Counts a flow that is joined with a peer of this version of the wire format. */
export function notePeerVersion(version = VERSION): void {
  if (version < VERSION) counters.earlierPeers++;
}

/**
 * Channels:
 * - `repnet:flow` {socket, mode}: a client's flow begins; 'flow', 'syn' or 'plain'.
 * - `repnet:paired` {socket}: both connections are joined.
 * - `repnet:failover` {socket, copy, error}: a copy is given up.
 * - `repnet:refused` {reason, remoteAddress, remotePort}: a server turns a replica connection away.
 * - `repnet:finished` {socket, mode, bytesRead, bytesWritten, wonByPrimary, wonByReplica}: the
 *   socket of a client's flow, or of one that a server has accepted, is destroyed. `mode` is how it
 *   was carried ('plain': by one connection that never had another); the last two are the bytes
 *   that each copy, or the winner of a race, brought first.
 */
export const channels = {
  flow: channel('repnet:flow'),
  paired: channel('repnet:paired'),
  failover: channel('repnet:failover'),
  refused: channel('repnet:refused'),
  finished: channel('repnet:finished'),
};
