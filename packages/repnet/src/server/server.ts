/**
 * The server that the application sees: a true `net.Server` on the first port, with a second
 * listener for replica connections beside it. It emits one 'connection' per flow, whichever of its
 * two connections comes first.
 */
import cluster from 'node:cluster';
import { channel } from 'node:diagnostics_channel';
import net from 'node:net';
import { onLeaving } from '../handover.js';
import { acceptingFor, countAsInstances } from '../net-internals.js';
import { supported } from '../net-parts.js';
import { asMode, checkServerOptions, defaults, isEnabled } from '../options.js';
import { Socket, upgrade } from '../socket.js';
import { type Inner, setServer } from '../socket-internals.js';
import { ReplicaListener } from './replica-listener.js';
import { bindPair } from './second-server.js';
import {
  type ConnectionListener,
  type Internals,
  kOptions,
  kReplication,
  kShared,
  type ServerConstructor,
  type ServerInstance,
  type ServerOptions,
  type TcpHandle,
} from './server-internals.js';

export type { ServerConstructor, ServerOptions } from './server-internals.js';
export type Server = ServerInstance;

export const Server = function Server(
  this: unknown,
  options?: ServerOptions | ConnectionListener,
  listener?: ConnectionListener,
) {
  if (!(this instanceof (Server as unknown as ServerConstructor)))
    return new (Server as unknown as ServerConstructor)(options as ServerOptions, listener);
  if (typeof options === 'object' && options !== null) checkServerOptions(options);
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
countAsInstances(Server, net.Server);

// If net is not known, nothing is overridden.
const OWN: PropertyKey[] = ['constructor', 'replicaAddress'];

function define(name: PropertyKey, value: unknown): void {
  if (supported || OWN.includes(name))
    Object.defineProperty(proto, name, { value, writable: true, configurable: true, enumerable: false });
}

define('constructor', Server);

define('listen', function listen(this: Internals, ...args: unknown[]) {
  const options = args[0] as { reusePort?: boolean; exclusive?: boolean } | undefined;
  const clustered = cluster.isWorker && options?.exclusive !== true;
  this[kShared] = clustered || (typeof options === 'object' && options?.reusePort === true);
  return (base.listen as (...a: unknown[]) => net.Server).apply(this, args);
});

const _listen2: Internals['_listen2'] = function _listen2(
  this: Internals,
  address,
  port,
  addressType,
  backlog,
  fd,
  flags,
) {
  const viaPrimary = cluster.isWorker && this[kShared] && this._handle !== null;
  const given = this._handle !== null && !viaPrimary;
  const tcp = typeof port === 'number' && port >= 0 && fd === undefined && !given;
  const listen = () => base._listen2.call(this, address, port, addressType, backlog, fd, flags);
  if (!tcp || !replicates(this)) {
    listen();
    if (this._handle !== null) acceptOurs(this, this._handle, undefined, tcp);
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
  acceptOurs(this, this._handle, listener, true);
  const bound = {} as { address: string; family: string; port: number };
  this._handle.getsockname(bound);
  this[kReplication] = listener;
  watchHandle(this);
  const withdraw = () => {
    forgetHandle(this);
    this[kReplication] = undefined;
    this._handle?.close();
    this._handle = null;
  };
  const how = { backlog, flags, random: port === 0, viaPrimary };
  const possible = listener.listen(bound, how, (error) => {
    withdraw();
    this.emit('error', error);
  });
  // The error is on its way; without a handle net does not say 'listening' before it.
  if (!possible) withdraw();
  if (this._unref) listener.server.unref();
};
define('_listen2', _listen2);

/**
 * Makes accepted connections sockets of ours. `directly`: at once, as net makes its own, since
 * turning a `net.Socket` into one costs more than the connection. Otherwise, and where net has
 * limits to apply, net makes them.
 */
function acceptOurs(
  server: Internals,
  handle: TcpHandle,
  listener: ReplicaListener | undefined,
  directly: boolean,
): void {
  const byNet = handle.onconnection;
  if (byNet === undefined) return;
  const accepted = channel('net.server.socket');
  const viaNet = acceptingFor<TcpHandle>(standIn(server, listener));
  handle.onconnection = (error, connection) => {
    if (error || !directly || server.maxConnections != null || server.blockList !== undefined)
      return byNet.call(viaNet, error, connection);
    // Set first, as net does: once the client's bytes arrive, a system call for the connection
    // takes several times as long.
    if (server.noDelay) connection.setNoDelay(true);
    const passes = listener?.passesBy() === true;
    const peer = passes ? undefined : listener?.arrive(connection);
    if (listener !== undefined && peer === undefined && !passes) return;
    const socket = new Socket({
      handle: connection,
      allowHalfOpen: server.allowHalfOpen,
      pauseOnCreate: server.pauseOnConnect,
      readable: true,
      writable: true,
      readableHighWaterMark: server.highWaterMark,
      writableHighWaterMark: server.highWaterMark,
      // The option as the socket sees it; the connection's is set below.
      noDelay: server.noDelay,
      keepAlive: server.keepAlive,
      keepAliveInitialDelay: server.keepAliveInitialDelay * 1000,
    } as unknown as net.SocketConstructorOpts) as Inner;
    // net would ask the system again.
    if (peer?.address !== undefined) socket._peername = peer;
    if (server.keepAlive) connection.setKeepAlive(true, server.keepAliveInitialDelay);
    server._connections++;
    setServer(socket, server);
    if (!passes) listener?.acceptPrimary(socket, peer?.address, peer?.port);
    // By the server's own method, which programs replace to see what it accepts.
    server.emit('connection', socket);
    if (accepted.hasSubscribers) accepted.publish({ socket });
  };
}

/**
 * Returns the server as net sees it while it accepts: net's events that concern the application are
 * emitted once per flow.
 */
function standIn(server: Internals, listener: ReplicaListener | undefined): object {
  const emit = (event: string, ...args: unknown[]): boolean => {
    if (event === 'drop' && listener?.primaryDropped(args[0] as net.DropArgument) === false) return true;
    if (event !== 'connection') return server.emit(event, ...args);
    const socket = upgrade(args[0] as net.Socket);
    setServer(socket, server);
    return listener?.acceptPrimary(socket) === false || server.emit('connection', socket);
  };
  return Object.create(server, {
    emit: { value: emit },
    _connections: {
      get: () => server._connections,
      set: (connections: number) => {
        server._connections = connections;
      },
    },
  });
}

function replicates(server: Internals): boolean {
  const wanted = server[kOptions].replicate ?? defaults.replicate;
  if (!isEnabled()) return false;
  // A predicate speaks of connections; a server that may get replicated ones listens for them.
  return typeof wanted === 'function' || asMode(wanted) !== false;
}

define('close', function close(this: Internals, done?: (error?: Error) => void) {
  forgetHandle(this);
  const replication = this[kReplication];
  this[kReplication] = undefined;
  const waits = replication?.close(() => {
    this._connections--;
    // If that was the last connection, the server is closed now, unless it listens again.
    if (this._handle === null) base.close.call(this);
  });
  // A connection that the application has not heard of counts, too.
  if (waits) this._connections++;
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

const listening = new Set<Internals>();
let asked = false;

/**
 * Watches for the server's handle among everything that leaves the process, until `forgetHandle`.
 */
function watchHandle(server: Internals): void {
  if (!asked) onLeaving(leaving);
  asked = true;
  listening.add(server);
}

function forgetHandle(server: Internals): void {
  listening.delete(server);
}

/** `object`: a server, its handle or, as one of the `stdio` of a child, its descriptor. */
function leaving(object: unknown): unknown {
  for (const server of listening) {
    const handle = server._handle;
    if (handle === null) continue;
    if (object === server || object === handle || (typeof object === 'number' && object === handle.fd))
      server[kShared] = true;
  }
  return object;
}
