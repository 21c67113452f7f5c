/** The client side of RepSYN: two handshakes and one flow, by whichever connection is established first. */
import net from 'node:net';
import { begun } from '../flow-events.js';
import { applySettings, giveHandle, type Handle } from '../net-internals.js';
import {
  type Attachment,
  attach,
  type Connection,
  type DialTarget,
  detach,
  type Inner,
  isUnref,
  setConnecting,
  setPeerPort,
  setPreamble,
  setRace,
  setSkew,
} from '../socket-internals.js';
import { counters } from '../stats.js';
import { encodeHello, HELLO_BYTES, HelloFlag, Kind } from '../wire.js';
import type { Attempt, AttemptSink } from './attempt.js';
import * as budget from './budget.js';
import { type ConnectionError, connected, copyAttempts, dialPlain, newAttempt, newToken } from './dialing.js';
import { type Copy, PRIMARY, REPLICA } from './machine.js';
import { forgetPeer, type Peer, peerKey } from './peers.js';

/** Two handshakes to one port from two source ports; the winner's handle becomes the socket's own. */
export class SynDial implements Attachment, AttemptSink {
  readonly native = false;
  readonly flow = undefined;
  readonly paired = false;
  readonly #socket: Inner;
  readonly #target: DialTarget;
  readonly #port: number;
  readonly #peer: Peer | undefined;
  readonly #attempts: (Attempt | undefined)[] = [];
  #error: ConnectionError | undefined;
  #delay: NodeJS.Timeout | undefined;
  #address: string | undefined;

  /** `peer`: the server is of this library, and the connections go to its second port. */
  constructor(socket: Inner, target: DialTarget, port: number, peer: Peer | undefined) {
    this.#socket = socket;
    this.#target = target;
    this.#port = port;
    this.#peer = peer;
  }

  start(): void {
    counters.flowsSyn++;
    const { host = 'localhost' } = this.#target.net;
    attach(this.#socket, this);
    setRace(this.#socket, 'open');
    if (net.isIP(host) !== 0) this.#address = host;
    try {
      this.#connect(PRIMARY, host);
    } catch (error) {
      detach(this.#socket);
      setConnecting(this.#socket, false);
      throw error;
    }
    // A name may be resolved by now, by a lookup that answers at once: then the second is under way.
    if (net.isIP(host) !== 0) this.#second();
    begun(this.#socket, 'syn');
  }

  #second(): void {
    const { copyDelay } = this.#target.replication;
    if (copyDelay === 0) {
      this.#connect(REPLICA, this.#address as string);
      return;
    }
    this.#delay = setTimeout(() => {
      if (budget.takeConnection()) this.#connect(REPLICA, this.#address as string);
    }, copyDelay);
    this.#delay.unref();
  }

  #connect(copy: Copy, host: string): void {
    const attempt = newAttempt(copy, this, this.#target, { host, port: this.#port });
    this.#attempts[copy] = attempt;
    attempt.start();
  }

  attemptEvent(attempt: Attempt, event: string, args: unknown[]): void {
    if (attempt.copy !== PRIMARY) return;
    this.#socket.emit(event, ...args);
    if (event !== 'lookup' || this.#address !== undefined || this.#socket.destroyed) return;
    const [error, address] = args as [Error | null, string | undefined];
    if (error || typeof address !== 'string' || net.isIP(address) === 0) return;
    this.#address = address;
    this.#second();
  }

  attemptOpen(attempt: Attempt, handle: Handle): void {
    const socket = this.#socket;
    clearTimeout(this.#delay);
    if (attempt.copy === PRIMARY) counters.synWonByFirst++;
    else counters.synWonBySecond++;
    this.#attempts[attempt.copy] = undefined;
    detach(socket);
    setRace(socket, attempt.copy);
    applySettings(socket, handle);
    giveHandle(handle, socket);
    // The second attempt may have begun after the application's unref().
    if (isUnref(socket)) handle.unref();
    if (this.#peer !== undefined) this.#prepareHello();
    copyAttempts(attempt, socket);
    try {
      connected(socket);
    } finally {
      // After the application's first bytes, which the server can begin with meanwhile.
      this.#dropOthers();
    }
  }

  /** To the second port of a server of this library: what follows the hello is a plain stream. */
  #prepareHello(): void {
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
    setPreamble(this.#socket, hello);
    setPeerPort(this.#socket, this.#target.net.port);
    setSkew(this.#socket, 0, HELLO_BYTES);
  }

  #dropOthers(): void {
    for (const copy of [PRIMARY, REPLICA] as const) {
      const attempt = this.#attempts[copy];
      this.#attempts[copy] = undefined;
      attempt?.abandon(this.#target.replication.loser === 'rst');
    }
  }

  attemptFailed(attempt: Attempt, error: NodeJS.ErrnoException | undefined): void {
    if (this.#attempts[attempt.copy] !== attempt) return;
    this.#attempts[attempt.copy] = undefined;
    if (attempt.copy === PRIMARY) copyAttempts(attempt, this.#socket);
    if (attempt.copy === PRIMARY || this.#error === undefined) this.#error = error;
    if (this.#attempts[PRIMARY] !== undefined || this.#attempts[REPLICA] !== undefined) return;
    clearTimeout(this.#delay);
    const { host = 'localhost', port } = this.#target.net;
    // The port is gone: the server may be another by now, or when it is there again.
    if (this.#address !== undefined) forgetPeer(peerKey(host, port, this.#target.replication.replicaPort));
    if (this.#peer !== undefined && this.#address !== undefined) {
      // It was the second, and nothing has been sent; try the first, plainly.
      detach(this.#socket);
      return dialPlain(this.#socket, this.#target);
    }
    this.#socket.destroy(this.#error);
  }

  /** Never: a socket that is connecting has nothing to give. */
  handOver(): boolean {
    return false;
  }

  closed(): void {
    clearTimeout(this.#delay);
    for (const attempt of this.#attempts) attempt?.abandon(false);
    this.#attempts.length = 0;
  }

  *connections(): Iterable<Connection> {
    for (const attempt of this.#attempts) if (attempt !== undefined) yield attempt;
  }
  peername(): object {
    return {};
  }
  sockname(): object {
    return this.#attempts[PRIMARY]?.local ?? {};
  }
}
