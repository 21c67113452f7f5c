/**
 * Knowledge of a server gained by a flow of two connections, for the flows after it. `known`: what
 * was known of the server when the flow began.
 */
import type { Leg } from '../flow/leg.js';
import * as budget from '../memory/budget.js';
import type { DialTarget } from '../socket-internals.js';
import { counters } from '../stats.js';
import { ANSWER_BYTES, type Answer, AnswerFlag, decodeAnswer } from '../wire.js';
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
import { probe } from './probe.js';
import { asAddress } from './resolution.js';

export function serverKey({ net, replication }: DialTarget): string {
  return peerKey(net.host, net.port, replication.replicaPort);
}

function noteForeign(target: DialTarget, kind: 'plain' | 'silent'): void {
  counters.foreignPeers++;
  rememberPeer(serverKey(target), kind);
}

/** The server has answered a hello. */
export function noteAnswer(target: DialTarget, { port, refusal, flags, threshold }: Answer): void {
  const ours = port === target.net.port;
  // A server with another first port is the right one only if it has joined the flow.
  if (!ours && refusal !== 0) rememberPeer(serverKey(target), 'other');
  else rememberPeer(serverKey(target), 'repnet', flags | (ours ? 0 : TRANSLATED), threshold);
}

/**
 * Returns whether the answer of the server at `address`, which accepts, proves that it is the
 * server on the first port: it has the first connection of this flow, or a life that is known.
 * `vouched`: the application says that the server is of this library, so that the first port is
 * proof enough while no life is known. A server of an earlier build, which reports no life, proves
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

/** The server's first bytes are no answer. */
export function noteNoAnswer(target: DialTarget): void {
  noteForeign(target, 'plain');
}

/** The second port is silent. */
export function noteSilence(target: DialTarget, known: Peer | undefined): void {
  if (known === undefined) noteForeign(target, 'silent');
}

/**
 * The second connection could not be established: refused by the port, or (`refused` false) for
 * another reason.
 */
export function noteUnreachable(target: DialTarget, known: Peer | undefined, refused: boolean): void {
  if (refused && known === undefined) noteForeign(target, 'plain');
  else if (strikePeer(serverKey(target))) counters.foreignPeers++;
}

/** The second connection was lost before the server had answered its hello. */
export function noteUnanswered(target: DialTarget): void {
  strikePeer(serverKey(target));
}

/**
 * The server's answer on a second connection, and whether it accepts and proves that it is the
 * server on the first port.
 */
export interface Verdict {
  readonly answer: Answer;
  readonly proves: boolean;
}

/** Lessons of one flow about its server, from the second connection. */
export class ServerReport {
  readonly #target: DialTarget;
  readonly #known: Peer | undefined;
  /** The server has answered this flow's hello. */
  #answered = false;
  /** The server has accepted the second connection, and has still to prove itself. */
  #unproved = false;

  constructor(target: DialTarget, known: Peer | undefined) {
    this.#target = target;
    this.#known = known;
  }

  /** Judges the first bytes of the server at `address`; returns undefined if they are no answer. */
  judge(bytes: Buffer, address: string): Verdict | undefined {
    const answer = bytes.length >= ANSWER_BYTES ? decodeAnswer(bytes) : undefined;
    if (answer === undefined) {
      noteNoAnswer(this.#target);
      return undefined;
    }
    this.#answered = true;
    noteAnswer(this.#target, answer);
    const vouched = this.#target.replication.peer === 'repnet';
    const taken = answer.refusal === 0;
    const proves = taken && isProved(this.#target, address, answer, vouched);
    // Asked again, a server that reports no life, or that of another port, would prove no more.
    const mayProve = answer.life !== undefined && answer.port === this.#target.net.port;
    this.#unproved = taken && !proves && mayProve;
    return { answer, proves };
  }

  /**
   * Asks a server that has not proved itself for its life beside `first`, for the flows after this
   * one: where the first connection is always the slower one, no answer ever says that the server
   * has it. The server has it once the last packet of the handshake is there, which takes less than
   * the handshake took here. `startTime`: when that began.
   */
  askBeside({ remoteAddress, localAddress, localPort }: Leg, startTime: number): void {
    if (!this.#unproved) return;
    this.#unproved = false;
    const address = asAddress(remoteAddress);
    if (address === undefined || !budget.takeConnection()) return;
    const { host } = this.#target.net;
    const ask = () => probe(host, address, this.#target, { localAddress, localPort });
    setTimeout(ask, performance.now() - startTime).unref();
  }

  /** The server has not answered for `pairTimeout`. */
  silent(): void {
    noteSilence(this.#target, this.#known);
  }

  /**
   * The second connection could not be established: refused by the port, or (`refused` false) for
   * another reason.
   */
  unreachable(refused: boolean): void {
    if (!this.#answered) noteUnreachable(this.#target, this.#known, refused);
  }

  /** The second connection was lost in use. */
  lost(): void {
    if (!this.#answered) noteUnanswered(this.#target);
  }
}
