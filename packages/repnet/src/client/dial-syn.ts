/** The client side of RepSYN: two handshakes and one flow, by whichever connection is established first. */

import net from 'node:net';
import { type Copy, PRIMARY, REPLICA } from '../flow/machine.js';
import { patientTimeout } from '../flow/patience.js';
import { begun } from '../flow-events.js';
import * as budget from '../memory/budget.js';
import { applySettings, type Handle } from '../net-internals.js';
import {
  type Attachment,
  attach,
  becomeNative,
  type Connection,
  type DialTarget,
  detach,
  type Inner,
  isUnref,
  setConnecting,
  setPeerPort,
  setRace,
} from '../socket-internals.js';
import { counters } from '../stats.js';
import { encodeHello, HelloFlag, Kind } from '../wire.js';
import { type Address, asAddress } from './address.js';
import type { Attempt, AttemptSink } from './attempt.js';
import { type ConnectionError, connected, copyAttempts, dialPlain, newAttempt, newToken } from './dialing.js';
import { noteTime } from './hedge-delay.js';
import { sendHelloFirst } from './hello-first.js';
import { forgetPeer, type Peer, peerKey, rememberPeer } from './peers.js';
import { Resolution } from './resolution.js';

/** Addresses of a name that are tried for the second connection, at most. */
const MOST_ADDRESSES = 8;

/**
 * Two handshakes to one port from two source ports; the winner's handle becomes the socket's own. Of a name with several addresses the first
 * connection tries one after the other, as net does, and the second races it to the others: the next one when one has failed, or beside it
 * when that takes too long (RFC 8305).
 */
export class SynDial implements Attachment, AttemptSink {
  readonly native = false;
  readonly flow = undefined;
  readonly paired = false;
  readonly #socket: Inner;
  readonly #target: DialTarget;
  readonly #port: number;
  readonly #peer: Peer | undefined;
  readonly #resolution: Resolution;
  /** And to where, as far as it is decided. */
  readonly #attempts = new Map<Attempt, string>();
  #primary: Attempt | undefined;
  /** Where the second connection goes next. */
  #untried: Address[] = [];
  #stagger: NodeJS.Timeout | undefined;
  #error: ConnectionError | undefined;
  #delay: NodeJS.Timeout | undefined;
  /** When the wait for the first connection began. */
  #begun = 0;
  #patience: NodeJS.Timeout | undefined;
  #address: Address | undefined;
  /** What is told when it is known that the race counts. */
  readonly #events: [event: string, args: unknown[]][] = [];

  /** `peer`: the server is of this library, and the connections go to its second port. */
  constructor(socket: Inner, target: DialTarget, port: number, peer: Peer | undefined) {
    this.#socket = socket;
    this.#target = target;
    this.#port = port;
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
    // A name may be resolved by now, by a lookup that answers at once: then the second is under way.
    if (this.#address === host) this.#second(this.#address);
    begun(this.#socket, 'syn');
  }

  #second(address: Address): void {
    const { copyDelay, pairTimeout } = this.#target.replication;
    // Whoever drops what goes to the second port may let the first one through.
    if (this.#peer !== undefined)
      this.#patience = patientTimeout(() => this.#miss(), copyDelay + pairTimeout);
    const { addresses } = this.#resolution;
    // The first connection begins with the first address, and comes to the others in turn.
    const [first = address, ...others] = addresses;
    this.#untried = [...others, first].slice(0, MOST_ADDRESSES);
    if (copyDelay === 0) {
      this.#next();
      return;
    }
    this.#begun = performance.now();
    this.#delay = setTimeout(() => {
      this.#delay = undefined;
      if (budget.takeConnection()) this.#next();
    }, copyDelay);
    this.#delay.unref();
  }

  /** The second connection, to the next address. */
  #next(): void {
    clearTimeout(this.#stagger);
    const address = this.#untried.shift();
    if (address === undefined) return;
    this.#connect(REPLICA, address);
    if (this.#untried.length === 0) return;
    const { autoSelectFamilyAttemptTimeout: wait } = this.#target.net;
    this.#stagger = setTimeout(() => {
      if (budget.takeConnection()) this.#next();
    }, wait ?? net.getDefaultAutoSelectFamilyAttemptTimeout()).unref();
  }

  /** Neither is established in time: the flow is plain, and so are the next ones for a while. */
  #miss(): void {
    if (this.#attempts.size === 0) return;
    const { host, port } = this.#target.net;
    rememberPeer(peerKey(host, port, this.#target.replication.replicaPort), 'silent');
    this.#giveUp();
    this.#goPlain();
  }

  /** Nothing has been sent on the second port. */
  #goPlain(): void {
    const names = asAddress(this.#target.net.host) === undefined ? this.#resolution.options : {};
    dialPlain(this.#socket, { ...this.#target, net: { ...this.#target.net, ...names } }, true);
  }

  #giveUp(): void {
    this.#stopTimers();
    for (const attempt of this.#attempts.keys()) attempt.abandon(false);
    this.#attempts.clear();
  }

  #stopTimers(): void {
    clearTimeout(this.#delay);
    clearTimeout(this.#stagger);
    clearTimeout(this.#patience);
  }

  #connect(copy: Copy, host: string): void {
    const names = asAddress(host) === undefined ? this.#resolution.options : {};
    if (copy === REPLICA) counters.copiesIssued++;
    const attempt = newAttempt(copy, this, this.#target, { host, port: this.#port, ...names });
    this.#attempts.set(attempt, host);
    if (copy === PRIMARY) this.#primary = attempt;
    attempt.start();
  }

  attemptEvent(attempt: Attempt, event: string, args: unknown[]): void {
    if (attempt.copy !== PRIMARY) return;
    // The application has dialled the first port.
    if (event !== 'lookup') args = [args[0], this.#target.net.port, ...args.slice(2)];
    // The race for the second port may come to nothing, and all of this happen again on the first.
    if (this.#peer === undefined) this.#socket.emit(event, ...args);
    // Who does not listen now would not have heard it.
    else if (this.#socket.listenerCount(event) > 0) this.#events.push([event, args]);
    if (event !== 'lookup' || this.#address !== undefined || this.#socket.destroyed) return;
    const [error, resolved] = args;
    const address = error ? undefined : asAddress(resolved);
    if (address === undefined) return;
    this.#address = address;
    this.#second(address);
  }

  attemptOpen(attempt: Attempt, handle: Handle): void {
    const socket = this.#socket;
    this.#stopTimers();
    if (attempt.copy === PRIMARY) counters.synWonByFirst++;
    else {
      counters.synWonBySecond++;
      counters.copiesWon++;
    }
    noteTime(this.#target, this.#begun);
    const where = this.#attempts.get(attempt);
    this.#attempts.delete(attempt);
    setRace(socket, attempt.copy);
    applySettings(socket, handle);
    becomeNative(socket, handle);
    // The second attempt may have begun after the application's unref().
    if (isUnref(socket)) handle.unref();
    const other = attempt.copy === REPLICA ? where : undefined;
    copyAttempts(this.#primary ?? attempt, socket, this.#target.net.port, other);
    try {
      this.#tellEvents();
      if (socket.destroyed) return;
      if (this.#peer !== undefined) this.#sayHello(handle);
      connected(socket);
    } finally {
      // After the application's first bytes, which the server can begin with meanwhile.
      this.#dropOthers();
    }
  }

  /** To the second port of a server of this library: what follows the hello is a plain stream. */
  #sayHello(handle: Handle): void {
    const hello = encodeHello({
      kind: Kind.raw,
      flags: HelloFlag.early,
      threshold: this.#target.replication.threshold,
      token: newToken(),
      // Of no use to a server that pairs it with nothing.
      sourceAddress: '',
      sourcePort: 0,
      targetAddress: '',
      targetPort: this.#target.net.port,
      patience: 0,
    });
    setPeerPort(this.#socket, this.#target.net.port);
    sendHelloFirst(this.#socket, handle, hello);
  }

  #dropOthers(): void {
    const losers = [...this.#attempts.keys()];
    this.#attempts.clear();
    for (const attempt of losers) attempt.abandon(this.#target.replication.loser === 'rst');
  }

  attemptFailed(attempt: Attempt, error: NodeJS.ErrnoException | undefined): void {
    if (!this.#attempts.delete(attempt)) return;
    if (attempt.copy === PRIMARY) copyAttempts(attempt, this.#socket, this.#target.net.port);
    if (attempt.copy === PRIMARY || this.#error === undefined) this.#error = error;
    // To another address at once; the first connection goes on to all of them by itself.
    if (attempt.copy === REPLICA && this.#untried.length > 0 && this.#attempts.size > 0) return this.#next();
    if (this.#attempts.size > 0) return;
    this.#stopTimers();
    const { host, port } = this.#target.net;
    // The port is gone: the server may be another by now, or when it is there again.
    if (this.#address !== undefined) forgetPeer(peerKey(host, port, this.#target.replication.replicaPort));
    if (this.#peer !== undefined && this.#address !== undefined) {
      // It was the second, and nothing has been sent; try the first, plainly.
      return this.#goPlain();
    }
    this.#tellEvents();
    this.#socket.destroy(this.#error);
  }

  #tellEvents(): void {
    for (const [event, args] of this.#events.splice(0)) this.#socket.emit(event, ...args);
  }

  /** Never: a socket that is connecting has nothing to give. */
  handOver(): boolean {
    return false;
  }

  closed(): void {
    this.#giveUp();
  }

  *connections(): Iterable<Connection> {
    yield* this.#attempts.keys();
  }
  peername(): object {
    return {};
  }
  sockname(): object {
    return this.#primary?.local ?? {};
  }
}
