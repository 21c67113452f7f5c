/**
 * The server that the application sees: a true `net.Server` on the first port, with a second listener for replica
 * connections beside it. It emits one 'connection' per flow, whichever of its two connections comes first.
 */
import cluster from 'node:cluster';
import { channel } from 'node:diagnostics_channel';
import net from 'node:net';
import { Accepted } from './flow/accept.js';
import { Greeter } from './flow/greeter.js';
import { Leg } from './flow/leg.js';
import { PRIMARY, REPLICA } from './flow/machine.js';
import { Remains } from './flow/remains.js';
import { type Entry, WaitingList } from './flow/waiting.js';
import { type Handle, nativeHandle, setNativeHandle } from './net-internals.js';
import {
  asMode,
  defaults,
  isEnabled,
  type Replication,
  replicationOptions,
  type ServerReplicationOptions,
} from './options.js';
import { attach, type Inner, Socket, setSkew, upgrade } from './socket.js';
import { channels, counters } from './stats.js';
import {
  AnswerFlag,
  comparableAddress,
  encodeAnswer,
  HELLO_BYTES,
  type Hello,
  HelloFlag,
  Kind,
  Refusal,
  type RefusalReason,
} from './wire.js';

export type ServerOptions = net.ServerOpts & ServerReplicationOptions & { blockList?: net.BlockList };

const kOptions = Symbol('repnet.options');
const kReplication = Symbol('repnet.replication');
const kShared = Symbol('repnet.shared');

type ConnectionListener = (socket: Socket) => void;

export interface Server extends net.Server {
  /** Address of the replica listener; null if there is none. */
  replicaAddress(): net.AddressInfo | null;
}
export interface ServerConstructor {
  new (connectionListener?: ConnectionListener): Server;
  new (options?: ServerOptions, connectionListener?: ConnectionListener): Server;
  (options?: ServerOptions | ConnectionListener, connectionListener?: ConnectionListener): Server;
  readonly prototype: Server;
}

interface Internals extends Server {
  [kOptions]: ServerOptions;
  [kReplication]: ReplicaListener | undefined;
  /** Other processes may accept on the same address. */
  [kShared]: boolean;
  _handle: TcpHandle | null;
  _connections: number;
  _unref: boolean;
  _listen2(
    address: string | null,
    port: number,
    addressType: number | null,
    backlog: number,
    fd: number | undefined,
    flags: number | undefined,
  ): void;
  allowHalfOpen: boolean;
  pauseOnConnect: boolean;
  highWaterMark?: number;
  noDelay: boolean;
  keepAlive: boolean;
  keepAliveInitialDelay: number;
  blockList?: net.BlockList;
}

interface TcpHandle {
  onconnection?: (this: TcpHandle, error: number, accepted: Handle) => void;
  getpeername?(out: object): number;
  getsockname(out: object): number;
  listen(backlog: number): number;
  close(): void;
}

type CreateHandle = (
  address: string,
  port: number,
  addressType: number,
  fd: undefined,
  flags: number | undefined,
) => TcpHandle | number;

export const Server = function Server(
  this: unknown,
  options?: ServerOptions | ConnectionListener,
  listener?: ConnectionListener,
) {
  if (!(this instanceof (Server as unknown as ServerConstructor)))
    return new (Server as unknown as ServerConstructor)(options as ServerOptions, listener);
  (net.Server as unknown as (...args: unknown[]) => void).call(this, options, listener);
  const self = this as Internals;
  self[kOptions] = typeof options === 'object' && options !== null ? options : {};
  self[kReplication] = undefined;
  self[kShared] = false;
  return undefined;
} as unknown as ServerConstructor;

const base = net.Server.prototype as Internals;
const proto = Object.create(base) as Internals;
Object.defineProperty(Server, 'prototype', { value: proto, writable: false });
Object.setPrototypeOf(Server, net.Server);

function define(name: PropertyKey, value: unknown): void {
  Object.defineProperty(proto, name, { value, writable: true, configurable: true, enumerable: false });
}

define('constructor', Server);

define('emit', function emit(this: Internals, event: string | symbol, ...args: unknown[]) {
  const socket = args[0] as Inner | undefined;
  // Only what net itself has just accepted here: programs emit 'connection' for streams of their own.
  if (
    event === 'connection' &&
    socket?.server === this &&
    Object.getPrototypeOf(socket) === net.Socket.prototype
  ) {
    upgrade(socket);
    if (this[kReplication]?.acceptPrimary(socket) === false) return true;
  }
  return (net.Server.prototype.emit as (...a: unknown[]) => boolean).call(this, event, ...args);
});

define('listen', function listen(this: Internals, ...args: unknown[]) {
  const options = args[0] as { reusePort?: boolean; exclusive?: boolean } | undefined;
  const clustered = cluster.isWorker && options?.exclusive !== true;
  this[kShared] = clustered || (typeof options === 'object' && options?.reusePort === true);
  return (base.listen as (...a: unknown[]) => net.Server).apply(this, args);
});

define(
  '_listen2',
  function _listen2(
    this: Internals,
    address: string | null,
    port: number,
    addressType: number | null,
    backlog: number,
    fd: number | undefined,
    flags: number | undefined,
  ) {
    const given = this._handle !== null && !(cluster.isWorker && this[kShared]);
    const tcp = typeof port === 'number' && port >= 0 && fd === undefined && !given;
    const listen = () => base._listen2.call(this, address, port, addressType, backlog, fd, flags);
    if (!tcp || !replicates(this)) {
      listen();
      if (this._handle !== null && tcp) acceptDirectly(this, this._handle, undefined);
      return;
    }
    const listener = new ReplicaListener(this);
    if (port === 0 && this._handle === null) {
      const pair = bindPair(this, address, addressType, flags, backlog);
      if (pair !== undefined) {
        this._handle = pair.first;
        listener.server._handle = pair.second;
      }
    }
    listen();
    if (this._handle === null) return;
    acceptDirectly(this, this._handle, listener);
    const bound = {} as { address: string; family: string; port: number };
    this._handle.getsockname(bound);
    this[kReplication] = listener;
    const withdraw = () => {
      this[kReplication] = undefined;
      this._handle?.close();
      this._handle = null;
    };
    const possible = listener.listen(bound, backlog, flags, port === 0, (error) => {
      withdraw();
      this.emit('error', error);
    });
    // The error is on its way; without a handle net does not say 'listening' before it.
    if (!possible) withdraw();
    if (this._unref) listener.server.unref();
  },
);

/**
 * Makes accepted connections sockets of ours from the start, as net makes its own: turning a `net.Socket` into one later
 * costs more than the connection. Where net has limits to apply, it does, and the result is turned ('emit' above).
 */
function acceptDirectly(server: Internals, handle: TcpHandle, listener: ReplicaListener | undefined): void {
  const byNet = handle.onconnection;
  if (byNet === undefined) return;
  const accepted = channel('net.server.socket');
  handle.onconnection = function (error, connection) {
    if (error || server.maxConnections != null || server.blockList !== undefined)
      return byNet.call(this, error, connection);
    if (listener?.takes(connection) === true) return;
    const socket = new Socket({
      handle: connection,
      allowHalfOpen: server.allowHalfOpen,
      pauseOnCreate: server.pauseOnConnect,
      readable: true,
      writable: true,
      readableHighWaterMark: server.highWaterMark,
      writableHighWaterMark: server.highWaterMark,
    } as unknown as net.SocketConstructorOpts) as Inner;
    if (server.noDelay) socket.setNoDelay(true);
    if (server.keepAlive) socket.setKeepAlive(true, server.keepAliveInitialDelay * 1000);
    server._connections++;
    socket.server = server;
    socket._server = server;
    listener?.acceptPrimary(socket);
    (net.Server.prototype.emit as (...a: unknown[]) => boolean).call(server, 'connection', socket);
    if (accepted.hasSubscribers) accepted.publish({ socket });
  };
}

function replicates(server: Internals): boolean {
  if (!isEnabled()) return false;
  const wanted = server[kOptions].replicate ?? defaults.replicate;
  // A predicate speaks of connections; a server that may get replicated ones listens for them.
  return typeof wanted === 'function' || asMode(wanted) !== false;
}

/** A free port whose successor (or the `replicaPort` asked for) is free too. */
function bindPair(
  server: Internals,
  address: string | null,
  addressType: number | null,
  flags: number | undefined,
  backlog: number,
): { first: TcpHandle; second: TcpHandle } | undefined {
  const create = (net as unknown as { _createServerHandle?: CreateHandle })._createServerHandle;
  if (create === undefined) return undefined;
  const bind = (port: number): TcpHandle | undefined => {
    const wildcards: [string, number][] = [
      ['::', 6],
      ['0.0.0.0', 4],
    ];
    const where: [string, number][] =
      address === null || address === undefined ? wildcards : [[address, addressType ?? 4]];
    for (const [host, family] of where) {
      const handle = create(host, port, family, undefined, flags);
      if (typeof handle === 'number') continue;
      // Only listening tells for sure: a port in use by connections can be bound.
      if (handle.getsockname({}) === 0 && handle.listen(backlog || 511) === 0) return handle;
      handle.close();
    }
    return undefined;
  };
  const spare: TcpHandle[] = [];
  try {
    for (let attempt = 0; attempt < 256; attempt++) {
      // The successors of ports that the kernel chooses are those from which it lets clients connect. Where many
      // connections are open or have just closed, all of those may be taken: then below the range it chooses from.
      const first = bind(attempt < 16 ? 0 : 10_000 + Math.floor(Math.random() * 22_000));
      // Another process may have begun to listen on it at this moment.
      if (first === undefined) continue;
      const bound = {} as { port: number };
      first.getsockname(bound);
      const wanted = server[kOptions].replicaPort ?? bound.port + 1;
      const second = wanted <= 65535 ? bind(wanted) : undefined;
      if (second !== undefined) return { first, second };
      spare.push(first);
    }
    return undefined;
  } finally {
    for (const handle of spare) handle.close();
  }
}

define('close', function close(this: Internals, done?: (error?: Error) => void) {
  this[kReplication]?.close();
  this[kReplication] = undefined;
  return base.close.call(this, done);
});

for (const name of ['ref', 'unref'] as const)
  define(name, function (this: Internals) {
    this[kReplication]?.server[name]();
    return base[name].call(this);
  });

define('replicaAddress', function replicaAddress(this: Internals) {
  return (this[kReplication]?.server.address() as net.AddressInfo | null | undefined) ?? null;
});

// -------------------------------------------------------------------- the second port

interface HeldReplica {
  leg: Leg;
  hello: Hello;
  rest: Buffer | undefined;
}

/** Connections that have not said hello yet, at most, per port. */
const MOST_SILENT = 1024;
/** Milliseconds after which a silent client of a server that pairs by token is taken for a plain one. */
const PREAMBLE_TIMEOUT = 200;

class ReplicaListener {
  readonly server: Internals;
  readonly #owner: Internals;
  readonly #replication: Replication;
  readonly #waiting: WaitingList<Accepted | Remains>;
  /** Replicas whose first connection has to come before they may take part. */
  readonly #held: WaitingList<HeldReplica>;
  readonly #greeter: Greeter;
  /** Pairing by token: reads the preamble of connections to the first port. */
  readonly #preambles: Greeter;
  readonly #addresses: Set<string>;
  #port = 0;

  constructor(owner: Internals) {
    this.#owner = owner;
    this.#replication = replicationOptions(owner[kOptions], undefined, 0);
    this.#addresses = new Set(owner[kOptions].addresses?.map(comparableTarget));
    const options = { timeout: defaults.waitTimeout, entries: defaults.waitEntries };
    this.#waiting = new WaitingList<Accepted | Remains>(options, (entry) => entry.flow?.waitOver());
    this.#held = new WaitingList<HeldReplica>({ ...options, entries: 1024 }, (entry) => {
      if (entry.flow !== undefined) this.#refuse(entry.flow.leg, 'unknown');
    });
    this.#greeter = new Greeter(
      { copy: REPLICA, most: MOST_SILENT, timeout: defaults.waitTimeout },
      (leg, hello, rest) => this.#greeted(leg, hello, rest),
      (leg) => {
        this.#count(leg, 'hello');
        leg.abort();
      },
    );
    this.#preambles = new Greeter(
      { copy: PRIMARY, most: MOST_SILENT, timeout: PREAMBLE_TIMEOUT },
      (leg, hello, rest) => this.#greeted(leg, hello, rest),
      // A plain client, of a protocol in which it speaks first, or not.
      (leg, bytes) => this.#acceptPlain(leg, bytes, 0),
    );
    this.server = net.createServer() as Internals;
  }

  /** False: it is known to have failed; `failed` will be called. */
  listen(
    bound: { address: string; family: string; port: number },
    backlog: number,
    flags: number | undefined,
    random: boolean,
    failed: (error: Error) => void,
  ): boolean {
    this.#port = bound.port;
    const port = this.#owner[kOptions].replicaPort ?? bound.port + 1;
    this.server.once('error', (error) => {
      // A worker's random port comes from the cluster's primary, which knows nothing of pairs: flows are plain then.
      if (!(cluster.isWorker && random)) failed(error);
    });
    if (port > 65535) {
      // There is no successor: replicas cannot be offered, flows are plain.
      return true;
    }
    if (cluster.isWorker && this.#owner[kShared]) {
      this.server.listen({ port, host: bound.address, backlog }, () => this.#greet());
      return true;
    }
    const family = bound.family === 'IPv6' ? 6 : 4;
    this.server._listen2(bound.address, port, family, backlog, undefined, flags);
    this.#greet();
    return this.server._handle !== null || (cluster.isWorker && random);
  }

  /** Connections to the second port are legs from the start; the application never sees them. */
  #greet(): void {
    const handle = this.server._handle;
    if (handle === null) return;
    handle.onconnection = (error, connection) => {
      // Out of descriptors: the first port says so; here a flow only goes without its copy.
      if (error) return;
      const leg = this.#greeter.accept(connection);
      if (this.#owner.keepAlive) leg.setKeepAlive(true, this.#owner.keepAliveInitialDelay * 1000);
    };
  }

  close(): void {
    this.server.close();
    this.#greeter.clear();
    this.#preambles.clear();
    this.#held.clear();
    this.#waiting.clear();
  }

  // ------------------------------------------------------------------ arrivals

  /** True: the connection is not a new flow of its own, or not yet known to be one. */
  takes(connection: Handle): boolean {
    if (this.#replication.pairing === 'token' && isEnabled()) {
      this.#preambles.accept(connection);
      return true;
    }
    return this.#joins(connection);
  }

  /** True: the connection is the first of a flow that began with its second, or of one that is over. */
  #joins(connection: Handle): boolean {
    const peer = {} as { address?: string; port?: number };
    const out = (connection as unknown as TcpHandle).getpeername?.(peer);
    if (out !== 0) return false;
    const known = this.#waiting.get(`${comparableAddress(peer.address)}|${peer.port}`);
    if (known === undefined || known.first !== 'replica' || known.state === 'paired') return false;
    const socket = new net.Socket({
      handle: connection,
      allowHalfOpen: true,
    } as unknown as net.SocketConstructorOpts);
    return !this.#join(known, socket);
  }

  /** The entry of a flow that began with its second connection, and now a first from the same place. */
  #join(known: Entry<Accepted | Remains>, socket: net.Socket): false {
    if (known.state === 'waiting' && known.flow?.joinable) {
      const waiting = known.flow;
      this.#waiting.settle(known, 'paired');
      if (waiting instanceof Accepted) waiting.join(socket);
      else waiting.serve(Leg.adopt(socket, PRIMARY, waiting), undefined, undefined);
      return false;
    }
    counters.lateTwins++;
    socket.resetAndDestroy();
    return false;
  }

  /** False: the connection belongs to a flow there is, or to one that is over, and the application hears nothing of it. */
  acceptPrimary(socket: Inner): boolean {
    if (!isEnabled()) return true;
    const key = keyOf(socket);
    const known = this.#waiting.get(key);
    if (known !== undefined && known.first === 'replica' && known.state !== 'paired') {
      this.#owner._connections--;
      Object.assign(socket, { _server: null, server: null });
      return this.#join(known, socket);
    }
    const accepted = new Accepted(socket, this.#replication, this.#port);
    counters.flowsAccepted++;
    attach(socket, accepted);
    this.#list(key, 'primary', accepted);
    const held = this.#held.get(key);
    if (held?.state === 'waiting' && held.flow !== undefined) {
      const { leg, hello, rest } = held.flow;
      this.#held.settle(held, 'paired');
      // The application gets the socket first, then what the replica has brought.
      queueMicrotask(() => this.#place(leg, hello, rest, key));
    }
    return true;
  }

  #list(key: string, first: 'primary' | 'replica', accepted: Accepted): void {
    const entry = this.#waiting.add(key, first, accepted);
    accepted.entry = entry;
    accepted.onClosed = (remains) => {
      if (entry.state !== 'waiting') return;
      if (remains === undefined) this.#waiting.settle(entry, 'over');
      else entry.flow = remains;
    };
  }

  #greeted(leg: Leg, hello: Hello, rest: Buffer | undefined): void {
    if (!isEnabled()) return this.#refuse(leg, 'disabled');
    if (this.#blocked(leg)) return this.#refuse(leg, 'limit');
    switch (hello.kind) {
      case Kind.probe:
        leg.send(this.#answer('none'), () => {});
        leg.close();
        return;
      case Kind.raw:
        return this.#acceptPlain(leg, rest, HELLO_BYTES);
      case Kind.primary:
      case Kind.replica: {
        const byToken = (hello.flags & HelloFlag.token) !== 0;
        if (byToken !== (this.#replication.pairing === 'token')) return this.#refuse(leg, 'mismatch');
        if ((hello.kind === Kind.primary) !== (leg.copy === PRIMARY)) return this.#refuse(leg, 'mismatch');
        if (byToken) return this.#placeByToken(leg, hello, rest);
        if (!sameSource(leg, hello)) return this.#refuse(leg, 'mismatch');
        return this.#place(leg, hello, rest, keyOf(leg));
      }
      default:
        return this.#refuse(leg, 'unknown');
    }
  }

  #place(leg: Leg, hello: Hello, rest: Buffer | undefined, key: string): void {
    if (leg.lost) return;
    const known = this.#waiting.get(key);
    if (known !== undefined && known.first === 'primary') {
      const waiting = known.flow;
      if (known.state !== 'waiting' || waiting === undefined || !waiting.joinable) {
        counters.lateTwins++;
        return this.#refuse(leg, 'late');
      }
      this.#waiting.settle(known, 'paired');
      if (waiting instanceof Remains) return waiting.serve(leg, this.#answer('none'), rest);
      leg.ref();
      waiting.pair(leg, hello, this.#answer('none'), rest);
      return;
    }
    if (!this.#mayBegin(leg, hello)) {
      this.#held.add(key, 'replica', { leg, hello, rest });
      return;
    }
    this.#begin(leg, hello, rest, key);
  }

  /**
   * The token names the flow. The connection that was established first says so and starts it; the other joins it in this
   * process or nowhere, and may come first only where no other process can have the flow.
   */
  #placeByToken(leg: Leg, hello: Hello, rest: Buffer | undefined): void {
    if (leg.lost) return;
    const key = hello.token.toString('latin1');
    const known = this.#waiting.get(key);
    if (known !== undefined) {
      const waiting = known.flow;
      const came = known.first === 'primary' ? PRIMARY : REPLICA;
      if (known.state !== 'waiting' || waiting === undefined || !waiting.joinable || came === leg.copy) {
        counters.lateTwins++;
        return this.#refuse(leg, 'late');
      }
      this.#waiting.settle(known, 'paired');
      if (waiting instanceof Remains) return waiting.serve(leg, this.#answer('none'), rest);
      leg.ref();
      waiting.complete(leg, this.#answer('none'), rest);
      return;
    }
    if ((hello.flags & HelloFlag.origin) === 0 && !this.#mayBegin(leg, hello)) {
      this.#held.add(key, leg.copy === PRIMARY ? 'primary' : 'replica', { leg, hello, rest });
      return;
    }
    this.#begin(leg, hello, rest, key);
    const held = this.#held.get(key);
    if (held?.state !== 'waiting' || held.flow === undefined) return;
    const other = held.flow;
    this.#held.settle(held, 'paired');
    this.#placeByToken(other.leg, other.hello, other.rest);
  }

  /**
   * A replica may start a flow only where its first connection can come to nobody else: not if other processes accept on
   * the address, nor if the client dialled another address than ours (translation, a balancer), nor if a flow of the same
   * client may have been forgotten.
   */
  #mayBegin(leg: Leg, hello: Hello): boolean {
    if (this.#owner[kShared] || !this.#waiting.complete) return false;
    if (hello.targetPort === this.#port && hello.targetAddress === comparableAddress(leg.localAddress))
      return true;
    return this.#addresses.has(`${hello.targetAddress}:${hello.targetPort}`);
  }

  #begin(leg: Leg, hello: Hello, rest: Buffer | undefined, key: string): void {
    if (this.#full(leg)) return this.#refuse(leg, 'limit');
    const owner = this.#owner;
    const socket = new Socket({
      allowHalfOpen: owner.allowHalfOpen,
      readableHighWaterMark: owner.highWaterMark,
      writableHighWaterMark: owner.highWaterMark,
    } as net.SocketConstructorOpts) as Inner;
    const accepted = new Accepted(socket, this.#replication, this.#port);
    attach(socket, accepted);
    counters.flowsAccepted++;
    this.#list(key, leg.copy === PRIMARY ? 'primary' : 'replica', accepted);
    accepted.begin(leg, hello, this.#answer('none'));
    leg.ref();
    this.#announce(socket);
    const flow = accepted.flow;
    if (owner.pauseOnConnect) flow?.pause(leg, rest);
    else if (rest !== undefined && !leg.lost) leg.push(rest);
  }

  /** A plain connection like any other: the winner of a RepSYN race, or a plain client of a server that pairs by token. */
  #acceptPlain(leg: Leg, rest: Buffer | undefined, skew: number): void {
    if (leg.lost) return;
    if (this.#full(leg)) {
      // Its client expects the application's bytes and nothing else.
      this.#count(leg, 'limit');
      leg.close();
      return;
    }
    const handle = nativeHandle(leg);
    setNativeHandle(leg, null);
    leg.lost = true;
    leg.sink = undefined;
    const owner = this.#owner;
    const socket = new Socket({
      handle,
      allowHalfOpen: owner.allowHalfOpen,
      manualStart: true,
      readableHighWaterMark: owner.highWaterMark,
      writableHighWaterMark: owner.highWaterMark,
    } as unknown as net.SocketConstructorOpts) as Inner;
    const local = {} as { port: number };
    (handle as unknown as TcpHandle).getsockname(local);
    local.port = this.#port;
    Object.assign(socket, { _sockname: local });
    setSkew(socket, skew, 0);
    socket.ref();
    socket.setNoDelay(owner.noDelay);
    if (owner.pauseOnConnect) Object.assign(socket, { readableFlowing: false });
    counters.flowsAccepted++;
    if (rest !== undefined) socket.push(rest);
    this.#announce(socket);
  }

  /** What net does with a connection it has accepted. */
  #announce(socket: Inner): void {
    const owner = this.#owner;
    owner._connections++;
    Object.assign(socket, { server: owner, _server: owner });
    if (owner.pauseOnConnect) Object.assign(socket, { readableFlowing: false });
    (net.Server.prototype.emit as (...a: unknown[]) => boolean).call(owner, 'connection', socket);
    const accepted = channel('net.server.socket');
    if (accepted.hasSubscribers) accepted.publish({ socket });
    if (!owner.pauseOnConnect && !socket.destroyed) socket.read(0);
  }

  /** A BlockList holds on the second port as on the first, for the copy of a flow as for a flow of its own. */
  #blocked(leg: Leg): boolean {
    const family = leg.remoteFamily === 'IPv6' ? 'ipv6' : 'ipv4';
    return this.#owner.blockList?.check(leg.remoteAddress ?? '', family) === true;
  }

  /** The limits of the first port hold on the second, too. */
  #full(leg: Leg): boolean {
    const owner = this.#owner;
    if (owner.maxConnections == null || owner._connections < owner.maxConnections) return false;
    if (owner.maxConnections === 0 && Number(process.versions.node.split('.')[0]) < 22) return false;
    owner.emit('drop', {
      localAddress: leg.localAddress,
      localPort: this.#port,
      localFamily: leg.localFamily,
      remoteAddress: leg.remoteAddress,
      remotePort: leg.remotePort,
      remoteFamily: leg.remoteFamily,
    } as net.DropArgument);
    return true;
  }

  // ------------------------------------------------------------------ answers

  #answer(reason: RefusalReason): Buffer {
    return encodeAnswer({
      refusal: Refusal[reason],
      flags:
        (this.#replication.pairing === 'token' ? AnswerFlag.token : 0) |
        (this.#owner[kShared] ? AnswerFlag.shared : 0),
      threshold: this.#replication.threshold,
    });
  }

  #refuse(leg: Leg, reason: RefusalReason): void {
    this.#count(leg, reason);
    if (leg.lost) return;
    leg.send(this.#answer(reason), () => {});
    leg.close();
  }

  #count(leg: Leg, reason: string): void {
    counters.refused++;
    if (channels.refused.hasSubscribers)
      channels.refused.publish({ reason, remoteAddress: leg.remoteAddress, remotePort: leg.remotePort });
  }
}

/** 'host:port' (IPv6 in brackets) in the form a hello is compared in. */
function comparableTarget(address: string): string {
  const colon = address.lastIndexOf(':');
  const host = address.slice(0, colon).replace(/^\[|\]$/g, '');
  return `${comparableAddress(host)}:${address.slice(colon + 1)}`;
}

function keyOf(socket: net.Socket): string {
  return `${comparableAddress(socket.remoteAddress)}|${socket.remotePort}`;
}

function sameSource(leg: Leg, hello: Hello): boolean {
  return hello.sourcePort === leg.remotePort && hello.sourceAddress === comparableAddress(leg.remoteAddress);
}

export type { Entry };
