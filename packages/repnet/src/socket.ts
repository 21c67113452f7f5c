/**
 * The socket that the application sees: a true `net.Socket`. Unreplicated, or after a RepSYN race,
 * it is nothing else. While a replication is attached, the methods that would touch the native
 * handle go to it instead. docs/design.md says why this and not a look-alike.
 */

import { AsyncResource } from 'node:async_hooks';
import * as net from 'node:net';
import { asBuffer, Bridge, type BridgeTarget, type Chunk, gather } from './bridge.js';
import { errnoOf, handoverRefused, systemError } from './errors.js';
import { onLeaving } from './handover.js';
import { finished, isFlow } from './info.js';
import {
  countAsInstances,
  type Handle,
  nativeHandle,
  setNativeHandle,
  tellClientSocket,
} from './net-internals.js';
import { supported } from './net-parts.js';
import { checkOptionNames, type ReplicationOptions } from './options.js';
import {
  type Callback,
  type DialTarget,
  type Inner,
  isOurs,
  kAttachment,
  kBacklog,
  kBegun,
  kOptions,
  kPeerPort,
  kRace,
  kSkew,
  kTrial,
  kUnref,
  noSkew,
  prepare,
  setConnecting,
} from './socket-internals.js';
import { channels } from './stats.js';
import { chooseTarget } from './target.js';
import { noteAnswered, noteUnanswered, type Participant } from './trial.js';

export type SocketConstructorOptions = net.SocketConstructorOpts & ReplicationOptions;

/** Options of a socket's `connect`: those of net, and those of replication. */
export type SocketConnectOptions = net.SocketConnectOpts & ReplicationOptions;

export interface Socket extends net.Socket {
  connect(options: SocketConnectOptions, connectionListener?: () => void): this;
  connect(port: number, host: string, connectionListener?: () => void): this;
  connect(port: number, connectionListener?: () => void): this;
  connect(path: string, connectionListener?: () => void): this;
}
/** Static members of net's class: `from`, `fromWeb`, … */
type SocketStatics = Pick<typeof net.Socket, Exclude<keyof typeof net.Socket, 'prototype'>>;

export interface SocketConstructor extends SocketStatics {
  new (options?: SocketConstructorOptions): Socket;
  (options?: SocketConstructorOptions): Socket;
  readonly prototype: Socket;
}

// A function, not a class: `Socket()` without `new` and `Socket.call(this)` are in use, as with
// net's.
export const Socket = function Socket(this: unknown, options?: SocketConstructorOptions) {
  if (!(this instanceof (Socket as unknown as SocketConstructor)))
    return new (Socket as unknown as SocketConstructor)(options);
  (net.Socket as unknown as (options: unknown) => void).call(this, options);
  prepare(this as unknown as Inner, typeof options === 'object' && options !== null ? options : undefined);
} as unknown as SocketConstructor;

const base = net.Socket.prototype as Inner;
const proto = Object.create(base) as Inner;
Object.defineProperty(Socket, 'prototype', { value: proto, writable: false });
Object.setPrototypeOf(Socket, net.Socket);
countAsInstances(Socket, net.Socket);
Object.defineProperty(proto, 'constructor', { value: Socket, writable: true, configurable: true });

// Of a net that is not known nothing is overridden but `connect`, which checks the options.

function define(name: PropertyKey, value: unknown): void {
  if (supported || name === 'connect')
    Object.defineProperty(proto, name, { value, writable: true, configurable: true, enumerable: false });
}

function getter(name: string, get: (this: Inner) => unknown): void {
  if (supported) Object.defineProperty(proto, name, { get, configurable: true, enumerable: true });
}

/** Makes an accepted `net.Socket` a socket of ours. */
export function upgrade(socket: net.Socket): Inner {
  Object.setPrototypeOf(socket, proto);
  prepare(socket as Inner, undefined);
  return socket as Inner;
}

/**
 * Runs methods of net's on the socket: `_handle` is the native one meanwhile, whatever is attached.
 */
function native<T>(socket: Inner, work: () => T): T {
  const attached = socket[kAttachment];
  if (attached === undefined) return work();
  const before = attached.natively;
  attached.natively = true;
  try {
    return work();
  } finally {
    // What is attached by now has taken it over.
    const now = socket[kAttachment];
    if (now !== undefined) now.natively = before;
  }
}

function handleOf(this: Inner): unknown {
  const attached = this[kAttachment];
  if (attached === undefined || attached.natively) return nativeHandle(this);
  if (this.destroyed) return null;
  attached.bridge ??= Bridge.create(bridgeTo(this));
  return attached.bridge?.handle ?? null;
}

/**
 * A socket is sent to another process. It is plain from now on, if one connection is all there is
 * to its flow; a socket that is still connecting has no handle to send.
 */
function leaving(object: unknown): unknown {
  if (!(object instanceof net.Socket) || !isOurs(object)) return object;
  const attached = object[kAttachment];
  if (attached === undefined || object.destroyed) return object;
  if (object.connecting) return undefined;
  if (attached.bridge?.taken === true || !attached.handOver()) throw handoverRefused();
  object[kAttachment] = undefined;
  return object;
}
if (supported) onLeaving(leaving);

if (supported)
  Object.defineProperty(proto, '_handle', {
    configurable: true,
    get: handleOf,
    set(this: Inner, handle: Handle | null) {
      setNativeHandle(this, handle);
    },
  });

// -------------------------------------------------------------------- connecting

/** Set by dial.ts: starts a replicated connection. */
let dial: (socket: Inner, target: DialTarget) => void;
export function setDial(start: typeof dial): void {
  dial = start;
}

define('connect', function connect(this: Inner, ...args: unknown[]) {
  if (this.destroyed) this[kAttachment] = undefined;
  this[kSkew] = noSkew;
  this[kPeerPort] = undefined;
  this[kRace] = undefined;
  this[kTrial] = undefined;
  const [options] = args;
  if (typeof options === 'object' && options !== null && !Array.isArray(options)) checkOptionNames(options);
  const own = this[kOptions];
  if (own !== undefined && own !== options) checkOptionNames(own);
  const target = this.connecting ? undefined : chooseTarget(this, args);
  if (target === undefined) return (base.connect as (...a: unknown[]) => net.Socket).apply(this, args);
  tellClientSocket(this, 'socket');
  const listener = args.at(-1);
  if (typeof listener === 'function') this.once('connect', listener as () => void);
  // A `write` that the socket or its class has of its own is lost, as with net.
  if (this.write !== proto.write) this.write = proto.write;
  if (this.destroyed) {
    setNativeHandle(this, null);
    Object.assign(this, { _peername: null, _sockname: null });
  }
  // Also a socket that was ended before it connects is not any more.
  this._undestroy();
  this._unrefTimer();
  setConnecting(this, true);
  dial(this, target);
  return this;
});

getter('pending', function () {
  return this[kAttachment]?.natively !== false
    ? nativeHandle(this) === null || this.connecting
    : this.connecting || this.destroyed;
});

getter('bufferSize', function () {
  if (this.destroyed) return undefined;
  if (this[kAttachment] !== undefined || nativeHandle(this) !== null) return this.writableLength;
  return undefined;
});

// -------------------------------------------------------------------- reading and writing

define('_read', function _read(this: Inner, n: number) {
  const attached = this[kAttachment];
  if (attached === undefined) return base._read.call(this, n);
  // net's method asks for `_handle` even while the socket is connecting, which would make a bridge.
  if (this.connecting) return native(this, () => base._read.call(this, n));
  if (attached.flow !== undefined) return attached.flow.resume();
  native(this, () => base._read.call(this, n));
});

define(
  '_writeGeneric',
  function _writeGeneric(
    this: Inner,
    writev: boolean,
    data: unknown,
    encoding: BufferEncoding,
    done: Callback,
  ) {
    const attached = this[kAttachment];
    if (attached === undefined || this.connecting)
      return base._writeGeneric.call(this, writev, data, encoding, done);
    const preface = attached.preface?.();
    if (preface !== undefined) {
      const chunks = writev ? (data as object[]) : [{ chunk: data, encoding }];
      const all = [{ chunk: preface, encoding: 'buffer' }, ...chunks];
      return native(this, () => base._writeGeneric.call(this, true, all, encoding, done));
    }
    const { flow } = attached;
    if (flow === undefined && attached.archive === undefined)
      return native(this, () => base._writeGeneric.call(this, writev, data, encoding, done));
    this._pendingData = null;
    const bytes = writev ? gather(data as Chunk[]) : asBuffer(data, encoding);
    if (flow !== undefined) return flow.write(bytes, done);
    attached.archive?.(bytes);
    const settled: Callback = (error) => done(error && attached.failed ? attached.failed(error) : error);
    native(this, () => base._writeGeneric.call(this, false, bytes, 'buffer' as BufferEncoding, settled));
  },
);

define('write', function write(this: Inner, chunk: unknown, encoding?: unknown, done?: unknown) {
  const args = [chunk, encoding, done];
  // A write that net would give to the system at once waits here behind one that waits for the
  // peer. Its callback runs when that one is done, in another request.
  if (this[kAttachment]?.flow?.writing) {
    const at = typeof encoding === 'function' ? 1 : 2;
    if (typeof args[at] === 'function') args[at] = AsyncResource.bind(args[at] as () => void);
  }
  return (base.write as (...a: unknown[]) => boolean).apply(this, args);
});

define('_final', function _final(this: Inner, done: Callback) {
  const attached = this[kAttachment];
  if (attached === undefined) return base._final.call(this, done);
  if (this.connecting) {
    this.once('connect', () => this._final(done));
    return;
  }
  if (attached.flow !== undefined) return attached.flow.end(done);
  attached.ending?.();
  native(this, () => base._final.call(this, done));
});

define('deliver', function deliver(this: Inner, chunk: Buffer | null) {
  const bridge = this[kAttachment]?.bridge;
  return bridge?.active ? bridge.deliver(chunk) : give(this, chunk);
});

/** The first byte of the reply is there: a socket of the trial has its time. */
function answered(socket: Inner): void {
  noteAnswered(socket[kTrial] as Participant);
  socket[kTrial] = undefined;
}

/** Gives a chunk (null: the end) to the application's stream. */
function give(socket: Inner, chunk: Buffer | null): boolean {
  if (socket[kTrial] !== undefined && chunk !== null) answered(socket);
  const more = base.push.call(socket, chunk);
  if (chunk === null) socket.read(0);
  return more;
}

// Accepted and unpaired: bytes come from the native handle by net's own way.
define('push', function push(this: Inner, chunk: Buffer | null, encoding?: BufferEncoding) {
  if (this[kTrial] !== undefined && chunk !== null) answered(this);
  if (chunk === null && this[kAttachment]?.holds?.(null)) return false;
  const bridge = this[kAttachment]?.bridge;
  if (bridge?.active && nativeHandle(this) !== null) return bridge.deliver(chunk);
  return base.push.call(this, chunk, encoding);
});

getter('unreferenced', function () {
  return this[kUnref];
});

define('touch', function touch(this: Inner) {
  this._unrefTimer();
});

// -------------------------------------------------------------------- the bridge's other end

function bridgeTo(socket: Inner): BridgeTarget {
  return {
    write: (parts, done) => {
      // When the application destroys the socket in a callback, tls still writes the rest of its
      // handshake.
      if (socket.destroyed) return done(systemError('EPIPE', 'write'));
      const chunks = parts.map((chunk) => ({ chunk, encoding: 'buffer' }));
      socket._writeGeneric(true, chunks, 'utf8', done);
    },
    end: (done) => {
      if (socket.destroyed) done(systemError('EPIPE', 'shutdown'));
      else socket._final(done);
    },
    close: (done) => {
      if (done !== undefined) socket.once('close', done);
      socket.destroy();
    },
    resume: () => socket._read(0),
    peername: () => socket._getpeername(),
    sockname: () => socket._getsockname(),
    connectsAgain: () => errnoOf(isConnected(socket) ? 'EISCONN' : 'EALREADY') as number,
    give: (chunk) => give(socket, chunk),
  };
}

/** Returns whether a connection is established, whatever net thinks of the socket. */
function isConnected(socket: Inner): boolean {
  const attached = socket[kAttachment];
  return attached?.native === true || attached?.flow?.tx.copies.includes('open') === true;
}

// -------------------------------------------------------------------- closing

define('destroy', function destroy(this: Inner, error?: NodeJS.ErrnoException, done?: Callback) {
  // Who gives a callback is not net, which destroys a socket whose connection failed without one.
  if (done === undefined && error?.syscall === 'read' && this[kAttachment]?.holds?.(error)) return this;
  return base.destroy.call(this, error, done);
});

define('resetAndDestroy', function resetAndDestroy(this: Inner) {
  const attached = this[kAttachment];
  if (attached === undefined || this.destroyed) return native(this, () => base.resetAndDestroy.call(this));
  if (this.connecting) this.once('connect', () => this._reset());
  else native(this, () => this._reset());
  return this;
});

/**
 * Calls `closed` after the callbacks of writes that were under way, as net does: those run when the
 * event loop closes the handles of connections, after the immediates of the same turn.
 */
function afterClosing(closed: (() => void) | undefined, writes: boolean): void {
  if (closed === undefined) return;
  if (writes) setImmediate(() => setImmediate(closed));
  else setImmediate(closed);
}

define('_destroy', function _destroy(this: Inner, error: Error | null, done: Callback) {
  const attached = this[kAttachment];
  const told = channels.finished.hasSubscribers && isFlow(this);
  this[kBegun] = false;
  if (this[kTrial] !== undefined) noteUnanswered(this[kTrial]);
  this[kTrial] = undefined;
  // The connections of its next life are referenced, as net's handle is.
  this[kUnref] = false;
  if (attached === undefined) {
    base._destroy.call(this, error, done);
    if (told) finished(this);
    return;
  }
  // The system resets a connection that is closed with bytes unread, but no longer has the bytes
  // that came with the hello. (A connection that is shutting down cannot be reset.)
  if ((attached.unread ?? 0) > 0 && !this.writableEnded) this.resetAndClosing = true;
  const reset = this.resetAndClosing === true;
  attached.closing?.();
  if (!attached.native || attached.flow !== undefined) {
    // Also of a write that the first connection was busy with when the second came.
    const underWay = this.writableLength > 0 || (attached.flow?.underWay ?? false);
    setNativeHandle(this, {
      bytesRead: attached.flow?.bytesRead ?? 0,
      bytesWritten: attached.flow?.tx.offset ?? 0,
      close: (closed?: () => void) => afterClosing(closed, underWay),
      reset: (closed?: () => void) => {
        afterClosing(closed, underWay);
        return 0;
      },
    } as unknown as Handle);
  }
  native(this, () => base._destroy.call(this, error, done));
  attached.closed(reset);
  if (told) finished(this);
});

// -------------------------------------------------------------- what the application asks and sets

getter('bytesRead', function () {
  return this[kAttachment]?.flow !== undefined && !this.destroyed
    ? this[kAttachment].flow.bytesRead
    : native(this, () => Reflect.get(base, 'bytesRead', this)) -
        (this[kSkew] ?? noSkew)[0] -
        (this[kAttachment]?.unread ?? 0);
});
getter('_bytesDispatched', function () {
  return this[kAttachment]?.flow !== undefined && !this.destroyed
    ? this[kAttachment].flow.tx.offset
    : native(this, () => Reflect.get(base, '_bytesDispatched', this)) - (this[kSkew] ?? noSkew)[1];
});

define('_getpeername', function _getpeername(this: Inner) {
  const attached = this[kAttachment];
  const self = this as Inner & { _peername?: object; _getpeername(): object };
  if (attached === undefined || self._peername || this.destroyed || attached.native) {
    const name = native(this, () => (base as typeof self)._getpeername.call(self)) as { port?: number };
    const port = this[kPeerPort];
    if (port !== undefined && name.port !== undefined) name.port = port;
    return name;
  }
  if (this.connecting) return {};
  self._peername = attached.peername();
  return self._peername;
});
define('_getsockname', function _getsockname(this: Inner) {
  const attached = this[kAttachment];
  const self = this as Inner & { _sockname?: object | null; _getsockname(): object };
  if (attached === undefined || (attached.native && attached.flow === undefined))
    return native(this, () => (base as typeof self)._getsockname.call(self));
  if (this.destroyed) return {};
  if (this.connecting) return attached.sockname();
  self._sockname ??= attached.sockname();
  return self._sockname;
});

for (const name of ['ref', 'unref'] as const) {
  const inherited = base[name];
  define(name, function (this: Inner) {
    const attached = this[kAttachment];
    this[kUnref] = name === 'unref';
    if (attached === undefined) return inherited.call(this);
    for (const connection of attached.connections()) connection[name]();
    if (attached.native && attached.flow === undefined) return native(this, () => inherited.call(this));
    return this;
  });
}

for (const name of ['setNoDelay', 'setKeepAlive', 'setTypeOfService', 'getTypeOfService']) {
  const inherited = Reflect.get(base, name) as ((...args: unknown[]) => unknown) | undefined;
  if (inherited === undefined) continue; // not in this version of Node
  const own = function (this: Inner, ...args: unknown[]) {
    const attached = this[kAttachment];
    if (attached === undefined) return inherited.apply(this, args);
    // http2 takes the handle of a socket after this call; before Node 26 it begins to read it, too.
    if (name === 'setNoDelay') attached.bridge?.expect();
    const { flow } = attached;
    // The native handle, or while it is connecting none.
    if (flow === undefined) return native(this, () => inherited.apply(this, args));
    const handle = nativeHandle(this);
    setNativeHandle(this, flow.optionsHandle() as Handle);
    try {
      return native(this, () => inherited.apply(this, args));
    } finally {
      setNativeHandle(this, handle);
    }
  };
  define(name, Object.defineProperty(own, 'length', { value: inherited.length }));
}

define('_onTimeout', function _onTimeout(this: Inner) {
  const attached = this[kAttachment];
  if (attached?.flow === undefined) {
    // net's handler emits 'timeout', which is no business of the native handle.
    const handle = nativeHandle(this);
    if (attached === undefined || handle === null) {
      (base as unknown as { _onTimeout(): void })._onTimeout.call(this);
      return;
    }
    return stillWriting(this, handle.writeQueueSize ?? 0) ? undefined : void this.emit('timeout');
  }
  // Bytes that a copy still has to send of a finished write are no activity of the application's.
  if (!stillWriting(this, this.writableLength > 0 ? attached.flow.backlog : 0)) this.emit('timeout');
});

/** A write that makes progress is activity, as net has it. */
function stillWriting(socket: Inner, backlog: number): boolean {
  const before = socket[kBacklog];
  socket[kBacklog] = backlog;
  if (backlog === 0 || backlog === before) return false;
  socket._unrefTimer();
  return true;
}
