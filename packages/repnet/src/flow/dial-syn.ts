/** The client side of RepSYN: two handshakes and one flow, by whichever connection is established first. */
import net from 'node:net';
import { moveHandle } from '../net-internals.js';
import {
  type Attachment,
  attach,
  type DialTarget,
  detach,
  type Inner,
  setConnecting,
  setSkew,
} from '../socket.js';
import { channels, counters } from '../stats.js';
import { encodeHello, HELLO_BYTES, HelloFlag, Kind } from '../wire.js';
import { type ConnectionError, connected, copyAttempts, dialPlain, legOptions, newToken } from './dialing.js';
import { Leg, type LegSink } from './leg.js';
import { type Copy, PRIMARY, REPLICA } from './machine.js';
import { forgetPeer, type Peer, peerKey } from './peers.js';

/** Two handshakes to one port from two source ports; the winner's handle becomes the socket's own. */
export class SynDial implements Attachment, LegSink {
  readonly native = false;
  readonly flow = undefined;
  readonly #socket: Inner;
  readonly #target: DialTarget;
  readonly #port: number;
  readonly #peer: Peer | undefined;
  readonly #legs: (Leg | undefined)[] = [];
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
    if (channels.flow.hasSubscribers) channels.flow.publish({ socket: this.#socket, mode: 'syn' });
  }

  #second(): void {
    const { copyDelay } = this.#target.replication;
    if (copyDelay === 0) {
      this.#connect(REPLICA, this.#address as string);
      return;
    }
    this.#delay = setTimeout(() => this.#connect(REPLICA, this.#address as string), copyDelay);
    this.#delay.unref();
  }

  #connect(copy: Copy, host: string): void {
    const options = legOptions(this.#target);
    const leg = new Leg(copy, this, options);
    this.#legs[copy] = leg;
    leg.connect({ ...options, host, port: this.#port });
  }

  legEvent(leg: Leg, event: string, args: unknown[]): void {
    if (leg.copy !== PRIMARY) return;
    this.#socket.emit(event, ...args);
    if (event !== 'lookup' || this.#address !== undefined || this.#socket.destroyed) return;
    const [error, address] = args as [Error | null, string | undefined];
    if (error || typeof address !== 'string' || net.isIP(address) === 0) return;
    this.#address = address;
    this.#second();
  }

  legOpen(leg: Leg): void {
    const socket = this.#socket;
    clearTimeout(this.#delay);
    if (leg.copy === PRIMARY) counters.synWonByFirst++;
    else counters.synWonBySecond++;
    this.#legs[leg.copy] = undefined;
    this.#dropOthers();
    if (this.#peer !== undefined) {
      leg.send(
        encodeHello({
          kind: Kind.raw,
          flags: HelloFlag.early,
          threshold: this.#target.replication.threshold,
          token: newToken(),
          sourceAddress: leg.localAddress ?? '',
          sourcePort: leg.localPort ?? 0,
          targetAddress: leg.remoteAddress ?? '',
          targetPort: this.#target.net.port,
        }),
        () => {},
      );
      Object.assign(socket, {
        _peername: { address: leg.remoteAddress, family: leg.remoteFamily, port: this.#target.net.port },
      });
    }
    if (this.#peer !== undefined) setSkew(socket, 0, HELLO_BYTES);
    leg.lost = true;
    leg.sink = undefined;
    detach(socket);
    moveHandle(leg, socket);
    connected(socket, leg);
  }

  #dropOthers(): void {
    for (const copy of [PRIMARY, REPLICA] as const) {
      const leg = this.#legs[copy];
      this.#legs[copy] = undefined;
      if (leg === undefined) continue;
      if (this.#target.replication.loser === 'rst') leg.refuse();
      else leg.close();
    }
  }

  legData(): boolean {
    return true;
  }
  legFin(): void {}

  legLost(leg: Leg, error: NodeJS.ErrnoException | undefined): void {
    if (this.#legs[leg.copy] !== leg) return;
    this.#legs[leg.copy] = undefined;
    if (leg.copy === PRIMARY) copyAttempts(leg, this.#socket);
    if (leg.copy === PRIMARY || this.#error === undefined) this.#error = error;
    if (this.#legs[PRIMARY] !== undefined || this.#legs[REPLICA] !== undefined) return;
    clearTimeout(this.#delay);
    const { host = 'localhost', port } = this.#target.net;
    if (this.#peer !== undefined && this.#address !== undefined) {
      // The second port is gone: the server may be another by now. Nothing has been sent; try the first, plainly.
      forgetPeer(peerKey(host, port, this.#target.replication.replicaPort));
      detach(this.#socket);
      return dialPlain(this.#socket, this.#target);
    }
    this.#socket.destroy(this.#error);
  }

  closed(): void {
    clearTimeout(this.#delay);
    for (const leg of this.#legs) leg?.close();
    this.#legs.length = 0;
  }

  *connections(): Iterable<net.Socket> {
    for (const leg of this.#legs) if (leg !== undefined) yield leg;
  }
  peername(): object {
    return {};
  }
  sockname(): object {
    const leg = this.#legs[PRIMARY];
    return leg === undefined
      ? {}
      : { address: leg.localAddress, family: leg.localFamily, port: leg.localPort };
  }
}
