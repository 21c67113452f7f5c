/**
 * The client side: makes the connections of a replicated socket. RepFlow: first and second port from one source port.
 * RepSYN: two handshakes and one flow, by whichever connection is established first.
 */
import { randomFillSync } from 'node:crypto';
import dns from 'node:dns';
import net from 'node:net';
import { moveHandle } from '../net-internals.js';
import {
  type Attachment,
  attach,
  type DialTarget,
  detach,
  type Inner,
  setConnecting,
  setDial,
  setSkew,
} from '../socket.js';
import { channels, counters } from '../stats.js';
import { AnswerFlag, decodeAnswer, encodeHello, HELLO_BYTES, HelloFlag, Kind } from '../wire.js';
import * as budget from './budget.js';
import { Flow } from './flow.js';
import { Leg, type LegSink } from './leg.js';
import { type Copy, PRIMARY, REPLICA } from './machine.js';
import { forgetPeer, type Peer, peerKey, recallPeer, rememberPeer, strikePeer } from './peers.js';
import { nextPort } from './ports.js';

const PORT_ATTEMPTS = 5;

type ConnectionError = NodeJS.ErrnoException & { localAddress?: string; localPort?: number };

/** Options of one leg: the application's, less what concerns its socket alone. */
function legOptions(target: DialTarget): net.TcpNetConnectOpts & net.SocketConstructorOpts {
  const { signal, onread, timeout, fd, readable, writable, ...rest } = target.net as net.TcpNetConnectOpts & {
    signal?: unknown;
    fd?: unknown;
    readable?: unknown;
    writable?: unknown;
  };
  return { ...rest, allowHalfOpen: true };
}

setDial((socket, target) => {
  const { host = 'localhost', port } = target.net;
  const known = recallKnown(host, target);
  const plain = known?.kind === 'plain' || known?.kind === 'silent';
  if (!budget.takeConnection()) {
    counters.overBudget++;
    return dialPlain(socket, target);
  }
  if (target.mode === 'syn') {
    if (target.net.localPort) return dialPlain(socket, target);
    if (known?.kind === 'plain') return new SynDial(socket, target, port, undefined).start();
    if (known?.kind === 'repnet')
      return new SynDial(socket, target, target.replication.replicaPort, known).start();
    // Unknown: one connection now, and find out for the next.
    dialPlain(socket, target);
    socket.once('connect', () => probe(host, socket.remoteAddress as string, target));
    return;
  }
  if (plain) return dialPlain(socket, target);
  if (target.replication.pairing === 'token') {
    // The first connection begins with a preamble, too, which only a server that expects it may get.
    if (known?.kind === 'repnet' && (known.until === 0 || (known.flags & AnswerFlag.token) !== 0))
      return new FlowDial(socket, target, known).start();
    dialPlain(socket, target);
    if (known?.kind !== 'repnet')
      socket.once('connect', () => probe(host, socket.remoteAddress as string, target));
    return;
  }
  new FlowDial(socket, target, known?.kind === 'repnet' ? known : undefined).start();
});

function recallKnown(host: string, target: DialTarget): Peer | undefined {
  const { peer, replicaPort, threshold } = target.replication;
  if (peer === 'plain') return { kind: 'plain', flags: 0, threshold: 0, until: 0, strikes: 0 };
  const known = recallPeer(peerKey(host, target.net.port, replicaPort));
  if (known?.kind !== 'repnet' && peer === 'repnet')
    return { kind: 'repnet', flags: 0, threshold, until: 0, strikes: 0 };
  return known;
}

function dialPlain(socket: Inner, target: DialTarget): void {
  counters.flowsPlain++;
  setConnecting(socket, false);
  (net.Socket.prototype.connect as (...a: unknown[]) => net.Socket).call(socket, target.net);
}

/** Asks, beside the first flow to a server, whether it understands replication. */
const probing = new Set<string>();
function probe(host: string, address: string, target: DialTarget): void {
  const { replicaPort, pairTimeout } = target.replication;
  const key = peerKey(host, target.net.port, replicaPort);
  if (probing.has(key)) return;
  probing.add(key);
  const connection = net.connect({
    ...legOptions(target),
    host: address,
    port: replicaPort,
  } as net.NetConnectOpts);
  connection.unref();
  let seen = Buffer.alloc(0);
  const finish = (kind: Peer['kind'], flags = 0, threshold = 0) => {
    clearTimeout(timer);
    if (!probing.delete(key)) return;
    if (kind !== 'repnet') counters.foreignPeers++;
    rememberPeer(key, kind, flags, threshold);
    connection.destroy();
  };
  const timer = setTimeout(() => finish('silent'), pairTimeout);
  timer.unref();
  connection.on('connect', () => {
    connection.write(
      encodeHello({
        kind: Kind.probe,
        flags: 0,
        threshold: target.replication.threshold,
        token: newToken(),
        sourceAddress: connection.localAddress ?? '',
        sourcePort: connection.localPort ?? 0,
        targetAddress: connection.remoteAddress ?? '',
        targetPort: target.net.port,
      }),
    );
  });
  connection.on('data', (chunk) => {
    seen = Buffer.concat([seen, chunk]);
    if (seen.length < 24 && seen[0] === 0x9e) return;
    const answer = seen.length >= 24 ? decodeAnswer(seen) : undefined;
    if (answer === undefined) finish('plain');
    else finish('repnet', answer.flags, answer.threshold);
  });
  connection.on('end', () => finish('plain'));
  connection.on('error', () => finish('plain'));
}

const tokens = Buffer.alloc(16 * 256);
let nextToken = tokens.length;
function newToken(): Buffer {
  if (nextToken === tokens.length) {
    randomFillSync(tokens);
    nextToken = 0;
  }
  nextToken += 16;
  return Buffer.from(tokens.subarray(nextToken - 16, nextToken));
}

function isCollision(error: NodeJS.ErrnoException | undefined): boolean {
  return error?.code === 'EADDRINUSE' || error?.code === 'EADDRNOTAVAIL';
}

/** Takes the source port, which the application did not choose, out of a connection error. */
function withoutLocal(error: ConnectionError): ConnectionError {
  for (const each of [error, ...((error as { errors?: ConnectionError[] }).errors ?? [])]) {
    if (each.localPort === undefined && each.localAddress === undefined) continue;
    each.message = each.message.replace(/ - Local \([^)]*\)/, '');
    delete each.localAddress;
    delete each.localPort;
  }
  return error;
}

/** The list of addresses tried, a public property of a socket that chose among several. */
function copyAttempts(leg: Leg, socket: Inner): void {
  const { autoSelectFamilyAttemptedAddresses } = leg;
  if (autoSelectFamilyAttemptedAddresses !== undefined)
    Object.assign(socket, { autoSelectFamilyAttemptedAddresses });
}

/** Connecting is over: tells the application as net does. */
function connected(socket: Inner, leg: Leg): void {
  setConnecting(socket, false);
  Object.assign(socket, { _sockname: null });
  copyAttempts(leg, socket);
  socket._unrefTimer();
  socket.emit('connect');
  socket.emit('ready');
  if (!socket.destroyed && !socket.isPaused()) socket.read(0);
}

// -------------------------------------------------------------------- RepFlow

class FlowDial implements Attachment {
  readonly native = false;
  readonly #socket: Inner;
  readonly #target: DialTarget;
  readonly #known: Peer | undefined;
  readonly #token = newToken();
  readonly #tokenPairing: boolean;
  flow: Flow;
  #attempts = 0;
  #localPort = 0;
  #address: string | undefined;
  #connectError: ConnectionError | undefined;
  #timer: NodeJS.Timeout | undefined;
  #delay: NodeJS.Timeout | undefined;
  #quiet = false;
  /** The server has answered this flow's hello. */
  #understood = false;
  /** What the host resolved to, so that an attempt with another source port does not ask again. */
  #resolved: unknown[] | undefined;
  #key: string;

  constructor(socket: Inner, target: DialTarget, known: Peer | undefined) {
    this.#socket = socket;
    this.#target = target;
    this.#known = known;
    const { host = 'localhost', port } = target.net;
    this.#key = peerKey(host, port, target.replication.replicaPort);
    this.#tokenPairing = target.replication.pairing === 'token';
    this.flow = this.#newFlow();
  }

  #newFlow(): Flow {
    const flow = new Flow(this.#socket, this.#target.replication, { framed: [this.#tokenPairing, true] });
    flow.peerKnown = this.#known !== undefined;
    if (this.#known !== undefined && this.#known.threshold > 0) flow.peerThreshold = this.#known.threshold;
    flow.onOpen = (leg) => this.#opened(leg);
    flow.onLost = (leg, error) => this.#lost(leg, error as ConnectionError | undefined);
    flow.onEvent = (leg, event, args) => this.#event(leg, event, args);
    flow.onAnswer = (leg, bytes) => this.#answered(leg, bytes);
    return flow;
  }

  start(): void {
    counters.flowsFlow++;
    attach(this.#socket, this);
    try {
      this.#connectBoth();
    } catch (error) {
      this.closed(false);
      detach(this.#socket);
      setConnecting(this.#socket, false);
      throw error;
    }
    if (channels.flow.hasSubscribers) channels.flow.publish({ socket: this.#socket, mode: 'flow' });
  }

  #connectBoth(): void {
    const { host = 'localhost', localPort } = this.#target.net;
    this.#localPort = localPort ?? nextPort();
    const options = legOptions(this.#target);
    if (this.#tokenPairing) options.noDelay = true;
    const primary = new Leg(PRIMARY, this.flow, options);
    this.flow.legs[PRIMARY] = primary;
    if (net.isIP(host) !== 0) this.#address = host;
    // The second first: if its port is taken, nothing has been sent on the first yet, and another port will do.
    if (this.#address !== undefined && this.#target.replication.copyDelay === 0) this.#connectReplica();
    primary.connect({ ...options, ...this.#lookup(), localPort: this.#localPort });
    if (this.#target.replication.copyDelay > 0) {
      this.#delay = setTimeout(() => {
        // Hedged: the second copy starts only if the first has brought nothing.
        if (this.flow.rx.delivered === 0 && !this.flow.closed && this.#address !== undefined)
          this.#connectReplica();
        else this.flow.abandon(REPLICA);
      }, this.#target.replication.copyDelay);
      this.#delay.unref();
    }
  }

  /** The application's resolver (or the default one), asked once. An invalid one is left for net to complain of. */
  #lookup(): { lookup?: net.LookupFunction } {
    const own = this.#target.net.lookup;
    if (this.#address !== undefined && this.#resolved === undefined) return {};
    if (own != null && typeof own !== 'function') return {};
    const resolve = (own ?? dns.lookup) as (
      host: string,
      options: object,
      done: (...result: unknown[]) => void,
    ) => void;
    return {
      lookup: ((host: string, options: object, done: (...result: unknown[]) => void) => {
        const resolved = this.#resolved;
        if (resolved !== undefined) return process.nextTick(done, ...resolved);
        resolve(host, options, (...result) => {
          this.#resolved = result;
          done(...result);
        });
      }) as unknown as net.LookupFunction,
    };
  }

  #connectReplica(): void {
    const { replicaPort, pairTimeout } = this.#target.replication;
    const options = legOptions(this.#target);
    // Small records must not wait for acknowledgements (Nagle): the application's own setting is for its own stream.
    const replica = new Leg(REPLICA, this.flow, { ...options, noDelay: true } as net.SocketConstructorOpts);
    this.flow.legs[REPLICA] = replica;
    replica.connect({
      ...options,
      host: this.#address as string,
      port: replicaPort,
      localPort: this.#localPort,
    });
    this.#timer ??= setTimeout(() => this.#timeout(), pairTimeout);
    this.#timer.unref();
  }

  /** A connection that is still pending after T is abandoned; the server remembers the pair for longer. */
  #timeout(): void {
    const { flow } = this;
    if (flow.tx.copies[REPLICA] === 'pending') {
      if (flow.legs[REPLICA] !== undefined && !flow.legs[REPLICA].connecting && this.#known === undefined)
        this.#foreign('silent');
      this.#giveUp(REPLICA);
    } else if (flow.tx.copies[PRIMARY] === 'pending') this.#giveUp(PRIMARY);
  }

  #giveUp(copy: Copy): void {
    clearTimeout(this.#timer);
    this.flow.abandon(copy);
    this.#noneLeft();
  }

  #noneLeft(): boolean {
    const { tx } = this.flow;
    if (!this.#socket.connecting || tx.copies[PRIMARY] !== 'gone' || tx.copies[REPLICA] !== 'gone')
      return false;
    this.#socket.destroy(this.#connectError);
    return true;
  }

  #opened(leg: Leg): void {
    const { flow } = this;
    if (leg.copy === PRIMARY) {
      if (
        this.#address !== undefined &&
        leg.remoteAddress !== this.#address &&
        flow.tx.copies[REPLICA] === 'pending'
      ) {
        // Another of the host's addresses answered: the second connection is on its way to the wrong one.
        flow.abandon(REPLICA);
      }
      if (this.#tokenPairing) {
        flow.expectAnswer(leg);
        flow.open(leg, this.#hello(leg, Kind.primary, true));
      } else flow.open(leg);
      this.#settle();
      if (this.#socket.connecting) connected(this.#socket, leg);
      return;
    }
    const early = this.#known !== undefined;
    flow.expectAnswer(leg);
    const hello = this.#hello(leg, Kind.replica, early);
    if (!early) {
      leg.send(hello, (error) => {
        if (error) leg.destroy(error);
      });
      return;
    }
    flow.open(leg, hello);
    this.#settle();
    if (this.#socket.connecting) connected(this.#socket, leg);
  }

  #hello(leg: Leg, kind: number, early: boolean): Buffer {
    const other = leg.copy === PRIMARY ? REPLICA : PRIMARY;
    return encodeHello({
      kind,
      flags:
        (this.#tokenPairing ? HelloFlag.token : 0) |
        (early ? HelloFlag.early : 0) |
        (this.flow.tx.copies[other] !== 'open' ? HelloFlag.origin : 0),
      threshold: this.#target.replication.threshold,
      token: this.#token,
      sourceAddress: leg.localAddress ?? '',
      sourcePort: leg.localPort ?? 0,
      targetAddress: leg.remoteAddress ?? '',
      targetPort: this.#target.net.port,
    });
  }

  #settle(): void {
    const { copies } = this.flow.tx;
    if (copies[PRIMARY] !== 'pending' && copies[REPLICA] !== 'pending') clearTimeout(this.#timer);
  }

  #answered(leg: Leg, bytes: Buffer): boolean {
    const { flow } = this;
    const answer = bytes.length >= 24 ? decodeAnswer(bytes) : undefined;
    if (answer === undefined) {
      this.#foreign('plain');
      leg.destroy();
      return false;
    }
    this.#understood = true;
    rememberPeer(this.#key, 'repnet', answer.flags, answer.threshold);
    flow.peerKnown = true;
    flow.peerThreshold = answer.threshold;
    if (answer.refusal !== 0) {
      leg.destroy();
      return false;
    }
    if (flow.tx.copies[REPLICA] === 'pending') {
      flow.open(leg);
      this.#settle();
      if (this.#socket.connecting) connected(this.#socket, leg);
    }
    if (channels.paired.hasSubscribers) channels.paired.publish({ socket: this.#socket });
    return true;
  }

  #foreign(kind: 'plain' | 'silent'): void {
    counters.foreignPeers++;
    rememberPeer(this.#key, kind);
  }

  /** True: dealt with here. */
  #lost(leg: Leg, error: ConnectionError | undefined): boolean {
    const { flow } = this;
    const socket = this.#socket;
    const { copy } = leg;
    if (flow.tx.copies[copy] !== 'pending') {
      if (copy === REPLICA && !this.#understood) strikePeer(this.#key);
      return false;
    }
    const chosenHere = this.#target.net.localPort === undefined;
    if (isCollision(error) && chosenHere && socket.connecting && this.#attempts < PORT_ATTEMPTS) {
      counters.portRetries++;
      this.#attempts++;
      this.#quiet = true;
      this.#restart();
      return true;
    }
    if (copy === REPLICA && !isCollision(error)) {
      if (error?.code === 'ECONNREFUSED' && this.#known === undefined) this.#foreign('plain');
      else if (strikePeer(this.#key)) counters.foreignPeers++;
    }
    if (copy === PRIMARY) copyAttempts(leg, socket);
    if (copy === PRIMARY && error !== undefined)
      this.#connectError = chosenHere ? withoutLocal(error) : error;
    flow.tx.lose(copy);
    flow.rx.lose(copy);
    if (copy === PRIMARY && flow.legs[REPLICA] === undefined && flow.tx.copies[REPLICA] === 'pending') {
      // Hedged, or the host is not resolved: the second copy is all that is left, or there will be none.
      clearTimeout(this.#delay);
      if (this.#address !== undefined) this.#connectReplica();
      else {
        flow.tx.lose(REPLICA);
        flow.rx.lose(REPLICA);
      }
    }
    this.#settle();
    if (!this.#noneLeft() && !socket.connecting) {
      flow.poke();
    }
    return true;
  }

  #restart(): void {
    clearTimeout(this.#timer);
    clearTimeout(this.#delay);
    this.#timer = undefined;
    const before = this.flow;
    before.onLost = undefined;
    before.onOpen = undefined;
    before.close(false);
    this.flow = this.#newFlow();
    this.#connectBoth();
  }

  #event(leg: Leg, event: string, args: unknown[]): void {
    if (leg.copy !== PRIMARY) return;
    if (!this.#quiet) {
      const last = args.at(-1);
      if (
        event === 'connectionAttemptFailed' &&
        last instanceof Error &&
        this.#target.net.localPort === undefined
      )
        withoutLocal(last as ConnectionError);
      this.#socket.emit(event, ...args);
    }
    if (event !== 'lookup' || this.#address !== undefined || this.#socket.destroyed) return;
    const [error, address] = args as [Error | null, string | undefined];
    if (error || typeof address !== 'string' || net.isIP(address) === 0) return;
    this.#address = address;
    if (this.#target.replication.copyDelay === 0) this.#connectReplica();
  }

  closed(reset: boolean): void {
    clearTimeout(this.#timer);
    clearTimeout(this.#delay);
    this.flow.close(reset);
  }

  *connections(): Iterable<net.Socket> {
    for (const leg of this.flow.legs) if (leg !== undefined) yield leg;
  }

  peername(): object {
    const leg = this.flow.legs[PRIMARY] ?? this.flow.legs[REPLICA];
    if (leg === undefined) return {};
    return { address: leg.remoteAddress, family: leg.remoteFamily, port: this.#target.net.port };
  }

  sockname(): object {
    const leg = this.flow.legs[PRIMARY] ?? this.flow.legs[REPLICA];
    if (leg === undefined) return {};
    return { address: leg.localAddress, family: leg.localFamily, port: leg.localPort };
  }
}

// -------------------------------------------------------------------- RepSYN

/** Two handshakes to one port from two source ports; the winner's handle becomes the socket's own. */
class SynDial implements Attachment, LegSink {
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
    if (this.#address !== undefined) this.#second();
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
      if (this.#target.replication.loser === 'rst') leg.abort();
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
    if (this.#peer !== undefined) {
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
