/**
 * The client side of RepSYN: two handshakes and one flow, by whichever connection is established
 * first.
 */

import { type Copy, PRIMARY, REPLICA } from '../flow/machine.js';
import { patientTimeout } from '../flow/waits.js';
import { begun } from '../info.js';
import * as budget from '../memory/budget.js';
import { applySettings, type Handle } from '../net-internals.js';
import {
  attach,
  becomeNative,
  type Connection,
  type DialTarget,
  detach,
  Flowless,
  type Inner,
  isUnref,
  setConnecting,
  setPeerPort,
  setRace,
} from '../socket-internals.js';
import { counters } from '../stats.js';
import { type Answer, Kind } from '../wire.js';
import type { Attempt, AttemptSink } from './attempt.js';
import {
  attemptDelay,
  type ConnectionError,
  connected,
  copyAttempts,
  isRefused,
  isShortage,
  newAttempt,
} from './dialing.js';
import { noteTime } from './hedge.js';
import { raceHello, sendHelloFirst } from './hello.js';
import { dropLoser } from './loser.js';
import { forgetLife, forgetPeer, lifeKey, type Peer, peerKey, strikePeer } from './peers.js';
import { probe } from './probe.js';
import { Proof } from './proof.js';
import { type Address, asAddress, Resolution } from './resolution.js';

/** Addresses of a name that are tried for the second connection, at most. */
const MOST_ADDRESSES = 8;

/**
 * Two handshakes from two source ports: both to the one port of a server of net, or to both ports
 * of a server of this library, where the second counts when the server has proved itself on it
 * (proof.ts). The winner's handle becomes the socket's own. If a name has several addresses, the
 * first connection tries one after the other, as net does. The second races it to the other
 * addresses: to the next when one has failed, or beside it when that takes too long (RFC 8305).
 */
export class SynDial extends Flowless implements AttemptSink {
  readonly native = false;
  readonly #socket: Inner;
  readonly #target: DialTarget;
  readonly #peer: Peer | undefined;
  readonly #resolution: Resolution;
  /** Attempts, and their destinations as far as they are decided. */
  readonly #attempts = new Map<Attempt, string>();
  #primary: Attempt | undefined;
  /** Addresses for the second connection, the next one first. */
  #untried: Address[] = [];
  #stagger: NodeJS.Timeout | undefined;
  #error: ConnectionError | undefined;
  /** The race is over. */
  #settled = false;
  #delay: NodeJS.Timeout | undefined;
  /** When the wait for the first connection began. */
  #begun = 0;
  #patience: NodeJS.Timeout | undefined;
  #address: Address | undefined;
  /** Connections to the second port on which the server has still to prove itself. */
  readonly #proofs = new Set<Proof>();
  /** The server has answered on one of them, and is not known by its life. */
  #isUnknown = false;
  /** When the host was known, by `performance.now()`. */
  #startTime = performance.now();

  /** `peer`: the server is of this library, and the second connection goes to its second port. */
  constructor(socket: Inner, target: DialTarget, peer: Peer | undefined) {
    super();
    this.#socket = socket;
    this.#target = target;
    this.#peer = peer;
    this.#resolution = new Resolution(target.net.lookup);
  }

  start(): void {
    counters.flowsSyn++;
    const { host } = this.#target.net;
    attach(this.#socket, this);
    setRace(this.#socket, 'open');
    this.#address = asAddress(host);
    try {
      this.#connect(PRIMARY, host);
    } catch (error) {
      detach(this.#socket);
      setConnecting(this.#socket, false);
      throw error;
    }
    // A lookup that answers at once has resolved the name by now: then the second is under way.
    if (this.#address === host) this.#second(this.#address);
    begun(this.#socket, 'syn');
  }

  #second(address: Address): void {
    const { copyDelay, pairTimeout } = this.#target.replication;
    if (copyDelay > 0) this.#begun = performance.now();
    const { addresses } = this.#resolution;
    // The first connection begins with the first address, and comes to the others in turn.
    const [first = address, ...others] = addresses;
    this.#untried = [...others, first].filter((each) => this.#mayProve(each)).slice(0, MOST_ADDRESSES);
    if (this.#untried.length === 0) return;
    if (this.#peer !== undefined)
      this.#patience = patientTimeout(() => this.#miss(), copyDelay + pairTimeout);
    if (copyDelay === 0) {
      this.#next();
      return;
    }
    this.#delay = setTimeout(() => this.#startWaiting(), copyDelay);
    this.#delay.unref();
  }

  /** Starts the second connection, if it waits: its time has come, or the first has failed. */
  #startWaiting(): void {
    if (this.#delay === undefined) return;
    clearTimeout(this.#delay);
    this.#delay = undefined;
    if (budget.takeConnection()) this.#next();
  }

  /**
   * Returns whether a server at the address may win: one of net always; one that the application
   * vouches for is known by its port, others by their lives.
   */
  #mayProve(address: string): boolean {
    const { until = 0, lives = [] } = this.#peer ?? {};
    return until === 0 || lives.some((life) => life.startsWith(`${address}|`));
  }

  /** Starts the second connection to the next address. */
  #next(): void {
    clearTimeout(this.#stagger);
    const address = this.#untried.shift();
    if (address === undefined || this.#settled) return;
    if (this.#peer !== undefined) this.#connect(REPLICA, address);
    else process.nextTick(() => this.#nextToPlain(address));
    if (this.#untried.length === 0) return;
    this.#stagger = setTimeout(() => {
      if (budget.takeConnection()) this.#next();
    }, attemptDelay(this.#target.net)).unref();
  }

  /**
   * Starts the second connection to an unmodified server, unless the system has established the
   * first by now, as it has at once to a server on this host: each connection is one more to the
   * server's application.
   */
  #nextToPlain(address: Address): void {
    if (!this.#settled && this.#primary?.isEstablished !== true) this.#connect(REPLICA, address);
  }

  get #key(): string {
    const { net, replication } = this.#target;
    return peerKey(net.host, net.port, replication.replicaPort);
  }

  /** No second connection has proved the server in time: the first goes on, as with net. */
  #miss(): void {
    if (this.#settled) return;
    strikePeer(this.#key);
    this.#dropSeconds();
    this.#endIfAlone();
  }

  #giveUp(): void {
    this.#settled = true;
    this.#stopTimers();
    for (const attempt of this.#attempts.keys()) attempt.abandon(false);
    this.#attempts.clear();
    this.#dropProofs();
  }

  #dropProofs(): void {
    for (const proof of this.#proofs) proof.abandon();
    this.#proofs.clear();
  }

  /** Gives up the connections to the second port. */
  #dropSeconds(): void {
    this.#stopTimers();
    this.#untried = [];
    for (const attempt of this.#attempts.keys()) {
      if (attempt.copy === PRIMARY) continue;
      this.#attempts.delete(attempt);
      attempt.abandon(false);
    }
    this.#dropProofs();
  }

  /** Ends the socket if neither connection is left. */
  #endIfAlone(): void {
    if (this.#settled || this.#attempts.size > 0 || this.#proofs.size > 0) return;
    this.#giveUp();
    this.#socket.destroy(this.#error);
  }

  #stopTimers(): void {
    clearTimeout(this.#delay);
    this.#delay = undefined;
    clearTimeout(this.#stagger);
    clearTimeout(this.#patience);
  }

  #connect(copy: Copy, host: string): void {
    const names = asAddress(host) === undefined ? this.#resolution.options : {};
    if (copy === REPLICA) counters.copiesIssued++;
    const { net, replication } = this.#target;
    const port = copy === REPLICA && this.#peer !== undefined ? replication.replicaPort : net.port;
    const attempt = newAttempt(copy, this, this.#target, { host, port, ...names });
    this.#attempts.set(attempt, host);
    if (copy === PRIMARY) this.#primary = attempt;
    attempt.start();
  }

  attemptEvent(attempt: Attempt, event: string, args: unknown[]): void {
    if (attempt.copy !== PRIMARY) return;
    if (event === 'lookup') this.#startTime = performance.now();
    this.#socket.emit(event, ...args);
    if (event !== 'lookup' || this.#address !== undefined || this.#socket.destroyed) return;
    const [error, resolved] = args;
    const address = error ? undefined : asAddress(resolved);
    if (address === undefined) return;
    this.#address = address;
    this.#second(address);
  }

  attemptOpen(attempt: Attempt, handle: Handle): void {
    const where = this.#attempts.get(attempt) as string;
    this.#attempts.delete(attempt);
    if (attempt.copy === REPLICA && this.#peer !== undefined) return this.#prove(handle, where);
    this.#win(attempt.copy, handle, where);
  }

  /**
   * Asks the server to prove on a second connection that it is the known one, before any byte of
   * the application's is on that.
   */
  #prove(handle: Handle, address: string): void {
    const { until = 0, lives = [] } = this.#peer ?? {};
    const isKnown = ({ life }: Answer) => {
      if (until === 0 || (life !== undefined && lives.includes(lifeKey(address, life)))) return true;
      this.#isUnknown = true;
      return false;
    };
    const proof = new Proof(handle, address, this.#target, isKnown, (_, proved) => {
      if (!this.#proofs.delete(proof)) return;
      // The first may be established without a report yet: a server would take it for another flow.
      if (proved && this.#primary?.isEstablished !== true) this.#win(REPLICA, proof.release(), address);
      else {
        proof.abandon();
        if (this.#untried.length > 0) this.#next();
        this.#endIfAlone();
      }
    });
    this.#proofs.add(proof);
    if (isUnref(this.#socket)) proof.unref();
    proof.ask();
  }

  #win(copy: Copy, handle: Handle, where: string): void {
    const socket = this.#socket;
    this.#settled = true;
    this.#stopTimers();
    if (copy === PRIMARY) counters.synWonByFirst++;
    else {
      counters.synWonBySecond++;
      counters.copiesWon++;
    }
    noteTime(this.#target, this.#begun);
    setRace(socket, copy);
    applySettings(socket, handle);
    becomeNative(socket, handle);
    // The second attempt may have begun after the application's unref().
    if (isUnref(socket)) handle.unref();
    const other = copy === REPLICA ? where : undefined;
    if (this.#primary !== undefined) copyAttempts(this.#primary, socket, this.#target.net.port, other);
    // At once, since the server would take it for another flow if it were established meanwhile.
    if (copy === REPLICA && this.#peer !== undefined) this.#dropOthers();
    try {
      if (socket.destroyed) return;
      if (copy === REPLICA && this.#peer !== undefined) this.#sayHello(handle);
      connected(socket, this.#target, this.#startTime);
    } finally {
      // After the application's first bytes, which the server can begin with meanwhile.
      this.#dropOthers();
      if (this.#isUnknown && copy === PRIMARY) this.#askAgain();
    }
  }

  /** The server is not the known one: asks it beside this flow, for the next ones. */
  #askAgain(): void {
    forgetLife(this.#key);
    const { localAddress, localPort, remoteAddress, destroyed } = this.#socket;
    const address = asAddress(remoteAddress);
    if (address !== undefined && !destroyed && budget.takeConnection())
      probe(this.#target.net.host, address, this.#target, { localAddress, localPort });
  }

  /**
   * Says hello to the second port of a server of this library; a plain stream follows the hello.
   */
  #sayHello(handle: Handle): void {
    setPeerPort(this.#socket, this.#target.net.port);
    sendHelloFirst(this.#socket, handle, raceHello(this.#target, Kind.raw));
  }

  #dropOthers(): void {
    const losers = [...this.#attempts.keys()];
    this.#attempts.clear();
    const { loser = this.#peer === undefined ? 'fin' : 'rst' } = this.#target.replication;
    for (const attempt of losers) dropLoser(attempt, loser);
    this.#dropProofs();
  }

  attemptFailed(attempt: Attempt, error: NodeJS.ErrnoException | undefined): void {
    if (!this.#attempts.delete(attempt)) return;
    if (attempt.copy === PRIMARY) copyAttempts(attempt, this.#socket, this.#target.net.port);
    if (attempt.copy === PRIMARY || this.#error === undefined) this.#error = error;
    if (this.#peer !== undefined && attempt.copy === PRIMARY) {
      // The server is gone, as net would report, whoever else may be on the second port.
      if (isRefused(error)) this.#dropSeconds();
      else this.#startWaiting();
      return this.#endIfAlone();
    }
    // To another address at once; the first connection goes on to all of them by itself.
    if (attempt.copy === REPLICA && this.#untried.length > 0 && this.#attempts.size > 0) return this.#next();
    // The port is gone: another server may be there now, or later.
    if ((this.#attempts.size === 0 || this.#peer !== undefined) && !isShortage(error)) forgetPeer(this.#key);
    this.#endIfAlone();
  }

  /** Never: a socket that is connecting has nothing to give. */
  handOver(): boolean {
    return false;
  }

  override closed(): void {
    this.#giveUp();
  }

  override *connections(): Iterable<Connection> {
    yield* this.#attempts.keys();
    yield* this.#proofs;
  }

  override sockname(): object {
    return this.#primary?.local ?? {};
  }
}
