/**
 * What a flow by two connections learns of its server, for the flows after it. `known`: what was known of the server when the flow began,
 * if anything.
 */
import type { DialTarget } from '../socket-internals.js';
import { counters } from '../stats.js';
import { type Answer, AnswerFlag } from '../wire.js';
import {
  forgetLife,
  lifeKey,
  noteLife,
  type Peer,
  peerKey,
  recallPeer,
  rememberPeer,
  strikePeer,
  TRANSLATED,
} from './peers.js';

export function serverKey({ net, replication }: DialTarget): string {
  return peerKey(net.host, net.port, replication.replicaPort);
}

function noteForeign(target: DialTarget, kind: 'plain' | 'silent'): void {
  counters.foreignPeers++;
  rememberPeer(serverKey(target), kind);
}

/** It has answered a hello. */
export function noteAnswer(target: DialTarget, { port, refusal, flags, threshold }: Answer): void {
  const ours = port === target.net.port;
  // Another first port: only that it has joined the flow shows that it is the same server's.
  if (!ours && refusal !== 0) rememberPeer(serverKey(target), 'other');
  else rememberPeer(serverKey(target), 'repnet', flags | (ours ? 0 : TRANSLATED), threshold);
}

/**
 * Returns whether the accepting answer of the server at `address` proves that it is the server on
 * the first port: it has the first connection of this flow, or lives a life that is known of it.
 * `vouched`: the application says that the server is of this library, so that the first port is
 * proof enough while no life is known. A server of an earlier build, which tells no life, proves
 * nothing.
 */
export function isProved(target: DialTarget, address: string, answer: Answer, vouched: boolean): boolean {
  const { flags, life, port } = answer;
  const key = serverKey(target);
  const { lives = [] } = recallPeer(key) ?? {};
  if (life !== undefined && lives.includes(lifeKey(address, life))) return true;
  if (life !== undefined && (flags & AnswerFlag.joined) !== 0) {
    noteLife(key, address, life);
    return true;
  }
  if (vouched && lives.length === 0) return port === target.net.port;
  forgetLife(key);
  return false;
}

/** What came in place of an answer is none. */
export function noteNoAnswer(target: DialTarget): void {
  noteForeign(target, 'plain');
}

/** The second port is silent. */
export function noteSilence(target: DialTarget, known: Peer | undefined): void {
  if (known === undefined) noteForeign(target, 'silent');
}

/** The second connection could not be established: the port has refused it, or (`refused` false) something else was in the way. */
export function noteUnreachable(target: DialTarget, known: Peer | undefined, refused: boolean): void {
  if (refused && known === undefined) noteForeign(target, 'plain');
  else if (strikePeer(serverKey(target))) counters.foreignPeers++;
}

/** The second connection was lost before the server had answered its hello. */
export function noteUnanswered(target: DialTarget): void {
  strikePeer(serverKey(target));
}
