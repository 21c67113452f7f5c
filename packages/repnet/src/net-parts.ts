/**
 * The few non-public properties of `net` this package relies on: looked for, and tried, when the
 * module is loaded. Where one is missing or does something else, nothing is replicated and
 * everything is plain `net`; see `supported`. Present in Node 20, 22, 24 and 26, whose differences
 * are dealt with in ./net-internals.ts.
 *
 * - `_handle` is an accessor of the prototype over a symbol-keyed slot. Overriding it lets a
 *   replicated socket keep its native handle from http and tls, which would otherwise read it past
 *   the replication.
 * - the handle points back to its socket by a symbol named 'owner_symbol'; moving a connected
 *   handle from one socket to another is setting slot and pointer (Node does the same when it tries
 *   several addresses).
 * - a handle reads into `onread` and takes request objects for connecting, writing and ending. Node
 *   keeps the classes of those, and of handles, to itself; a socket over a handle that only looks
 *   on gives them away. From Node 26 on, a handle makes the requests for writing itself.
 */
import net from 'node:net';
import { PerformanceObserver } from 'node:perf_hooks';
import type { ConnectRequest, Handle, Request } from './net-internals.js';

// Questions to net about a connection, with a stand-in for the socket.

type Asked = Pick<Parts, 'owner' | 'onread' | 'onconnect'>;

/**
 * Returns net's error for a connection that failed with this status, after net's events before it.
 */
export function askConnectFailure(
  { owner, onconnect }: Asked,
  status: number,
  request: ConnectRequest,
  emit: (event: string, args: unknown[]) => void,
): NodeJS.ErrnoException | undefined {
  let failure: NodeJS.ErrnoException | undefined;
  const asking = {
    destroyed: false,
    connecting: true,
    emit: (event: string, ...args: unknown[]) => emit(event, args),
    destroy: (error: NodeJS.ErrnoException) => {
      failure = error;
    },
  };
  const handle = { [owner]: asking } as unknown as Handle;
  onconnect.call(request, status, handle, request, false, false);
  return failure;
}

const measuring = {
  destroyed: false,
  connecting: true,
  readable: false,
  writable: false,
  _unrefTimer: () => {},
  emit: () => {},
};

/**
 * Lets net report a connection to perf_hooks that began at `startTime` and is established now, if
 * there is an observer.
 */
export function measureConnect(
  { owner, onconnect, measured }: Pick<Parts, 'owner' | 'onconnect' | 'measured'>,
  detail: { host: string; port: number },
  startTime: number,
): void {
  if (measured === undefined) return;
  const context = { type: 'net', name: 'connect', detail, startTime };
  const handle = { [owner]: { ...measuring, [measured]: context } } as unknown as Handle;
  onconnect.call({}, 0, handle, {}, false, false);
}

/**
 * Returns why `onread` was called without bytes, whose number only net can read; null: the peer has
 * ended the stream.
 */
export function askReadFailure({ owner, onread }: Asked): NodeJS.ErrnoException | null {
  onread.call({ [owner]: inquirer } as unknown as Handle);
  const { error } = inquirer;
  inquirer.error = null;
  return error;
}

const inquirer = Object.create(net.Socket.prototype, {
  error: { value: null, writable: true },
  _parent: { value: null },
  destroyed: { value: false },
  _readableState: { value: { endEmitted: false } },
  on: { value: () => inquirer },
  // On trial, it may find the number of an earlier read.
  push: { value: () => true },
  read: { value: () => null },
  destroy: {
    value: (error: NodeJS.ErrnoException) => {
      inquirer.error = error;
    },
  },
}) as { error: NodeJS.ErrnoException | null };

export interface Parts {
  getHandle(this: object): unknown;
  setHandle(this: object, handle: unknown): void;
  /** The field of a handle that holds its socket or server. */
  owner: symbol;
  /**
   * Functions of net's that handles call with bytes, and requests with the outcome of connecting.
   */
  onread: NonNullable<Handle['onread']>;
  onconnect: NonNullable<ConnectRequest['oncomplete']>;
  Handle: new (kind: number) => Handle;
  ConnectRequest: new () => ConnectRequest;
  ShutdownRequest: new () => Request;
  /** Undefined: handles make them. */
  WriteRequest: (new () => Request) | undefined;
  /** Fields in which net keeps `setNoDelay` and the like; undefined where this version has none. */
  noDelay: symbol;
  keepAlive: symbol;
  keepAliveDelay: symbol;
  keepAliveInterval: symbol | undefined;
  keepAliveCount: symbol | undefined;
  typeOfService: symbol | undefined;
  /** Undefined in early versions of Node 20. */
  reinitialize: symbol | undefined;
  /** Whether this version emits 'connectionAttempt'. */
  tellsAttempts: boolean;
  /**
   * The field in which net keeps, for perf_hooks, when connecting began; undefined where there is
   * none.
   */
  measured: symbol | undefined;
}

/** Methods that are overridden or called. */
const SOCKET = [
  '_destroy',
  '_final',
  '_getpeername',
  '_getsockname',
  '_onTimeout',
  '_read',
  '_reset',
  '_undestroy',
  '_unrefTimer',
  '_writeGeneric',
];
const SERVER = ['_listen2'];
const MODULE = ['_createServerHandle'];
const NATIVE = [
  'bind',
  'bind6',
  'close',
  'connect',
  'connect6',
  'getpeername',
  'getsockname',
  'readStart',
  'readStop',
  'ref',
  'reset',
  'setKeepAlive',
  'setNoDelay',
  'shutdown',
  'unref',
  'writeBuffer',
  'writev',
];

const NEEDED_SYMBOLS = ['kSetNoDelay', 'kSetKeepAlive', 'kSetKeepAliveInitialDelay'] as const;

/** Names of the private parts, for the tests. */
export const PRIVATE_METHODS: readonly string[] = [
  ...SOCKET.map((name) => `Socket.${name}`),
  ...SERVER.map((name) => `Server.${name}`),
  ...MODULE.map((name) => `net.${name}`),
  ...NATIVE.map((name) => `TCP.${name}`),
];
export const PRIVATE_SYMBOLS: readonly string[] = ['owner_symbol', ...NEEDED_SYMBOLS];

/** Any error will do. */
const UV_EPERM = -1;

class Absent extends Error {}

function needMethods(object: object, names: readonly string[], of: string): void {
  for (const name of names)
    if (typeof Reflect.get(object, name) !== 'function') throw new Absent(`${of}.${name}`);
}

/** Returns a private field's symbol, of the object or of its prototype. */
function symbolNamed(object: object, name: string): symbol | undefined {
  for (let o: object | null = object; o !== null; o = Object.getPrototypeOf(o))
    for (const symbol of Object.getOwnPropertySymbols(o)) if (symbol.description === name) return symbol;
  return undefined;
}

function needSymbol(object: object, name: string): symbol {
  const symbol = symbolNamed(object, name);
  if (symbol === undefined) throw new Absent(name);
  return symbol;
}

/** A handle that only keeps what a socket or server of net's gives it. */
class Onlooker {
  onread: Handle['onread'];
  onconnection: unknown;
  /** The last request; null: a call came without one. */
  seen: object | null | undefined;
  [key: symbol]: unknown;

  connect(request: object): number {
    this.seen = request;
    return 0;
  }
  writeBuffer(request: object | null): number {
    this.seen = request;
    return 0;
  }
  shutdown(request: object): number {
    this.seen = request;
    return 1;
  }
  listen(): number {
    return 0;
  }
  close(): void {}

  take(call: string): object {
    const { seen } = this;
    this.seen = undefined;
    if (typeof seen !== 'object' || seen === null) throw new Absent(`the request of ${call}`);
    return seen;
  }
}

type Class<Arguments extends unknown[], T> = new (...args: Arguments) => T;

function find(): Parts {
  const accessor = Object.getOwnPropertyDescriptor(net.Socket.prototype, '_handle');
  if (accessor?.get === undefined || accessor.set === undefined) throw new Absent('Socket._handle');
  const { get: getHandle, set: setHandle } = accessor;
  needMethods(net.Socket.prototype, SOCKET, 'Socket');
  needMethods(net.Server.prototype, SERVER, 'Server');
  needMethods(net, MODULE, 'net');

  const onlooker = new Onlooker();
  const socket = new net.Socket({ handle: onlooker, manualStart: true } as net.SocketConstructorOpts);
  const { onread } = onlooker;
  if (typeof onread !== 'function') throw new Absent('onread');
  socket._write(Buffer.alloc(1), 'buffer' as BufferEncoding, () => {});
  const WriteRequest = onlooker.seen === null ? undefined : onlooker.take('write').constructor;
  socket._final(() => {});
  const ShutdownRequest = onlooker.take('shutdown').constructor;
  setHandle.call(socket, null);

  const { made, request, measured, tellsAttempts } = connecting(onlooker);
  needMethods(made, NATIVE, 'TCP');
  if (WriteRequest === undefined && !('writeQueueSize' in made)) throw new Absent('TCP.writeQueueSize');
  if (typeof request.oncomplete !== 'function') throw new Absent('oncomplete');

  // The socket has a field for each setting only then.
  const fresh = new net.Socket().setKeepAlive(true, 1_000);
  const [noDelay, keepAlive, keepAliveDelay] = NEEDED_SYMBOLS.map((name) => needSymbol(fresh, name)) as [
    symbol,
    symbol,
    symbol,
  ];
  const parts: Parts = {
    getHandle,
    setHandle,
    owner: needSymbol(onlooker, 'owner_symbol'),
    onread,
    onconnect: request.oncomplete,
    Handle: made.constructor as Class<[number], Handle>,
    ConnectRequest: request.constructor as Class<[], ConnectRequest>,
    ShutdownRequest: ShutdownRequest as Class<[], Request>,
    WriteRequest: WriteRequest as Class<[], Request> | undefined,
    noDelay,
    keepAlive,
    keepAliveDelay,
    keepAliveInterval: symbolNamed(fresh, 'kSetKeepAliveInterval'),
    keepAliveCount: symbolNamed(fresh, 'kSetKeepAliveCount'),
    typeOfService: symbolNamed(fresh, 'kSetTOS'),
    reinitialize: symbolNamed(net.Socket.prototype, 'kReinitializeHandle'),
    tellsAttempts,
    measured,
  };
  tryListening(onlooker);
  askReadFailure(parts);
  if (!(askConnectFailure(parts, UV_EPERM, request, () => {}) instanceof Error))
    throw new Absent('oncomplete');
  return parts;
}

/** Returns a socket that connects with the onlooker in place of a handle of its own. */
function connecting(onlooker: Onlooker): {
  made: Handle;
  request: ConnectRequest;
  measured: symbol | undefined;
  tellsAttempts: boolean;
} {
  let made: Handle | undefined;
  const socket = Object.defineProperty(new net.Socket(), '_handle', {
    get: () => (made === undefined ? null : onlooker),
    set: (handle: Handle) => {
      made ??= handle;
    },
  });
  // Without an observer net measures nothing.
  const observer = new PerformanceObserver(() => {});
  observer.observe({ entryTypes: ['net'] });
  let tellsAttempts = false;
  socket.once('connectionAttempt', () => {
    tellsAttempts = true;
  });
  socket.connect({
    host: 'nowhere.invalid',
    port: 1,
    autoSelectFamily: false,
    lookup: (_host, _options, done) => done(null, '127.0.0.1', 4),
  });
  observer.disconnect();
  if (made === undefined) throw new Absent('TCP');
  (made as Handle).close();
  const measured = symbolNamed(socket, 'kPerfHooksNetConnectContext');
  return { made, request: onlooker.take('connect') as ConnectRequest, measured, tellsAttempts };
}

/** Tries whether a server listens on a handle of its own, and accepts what that reports. */
function tryListening(onlooker: Onlooker): void {
  const server = new net.Server() as net.Server & {
    _handle: object | null;
    _connections: number;
    _listen2(...args: unknown[]): void;
  };
  if (server._handle !== null || server._connections !== 0) throw new Absent('Server._handle');
  server._handle = onlooker;
  server._listen2(null, 0, 4, 1, undefined, undefined);
  // Without a handle the server does not emit 'listening'.
  server._handle = null;
  if (typeof onlooker.onconnection !== 'function') throw new Absent('onconnection');
}

function findOrWarn(): Parts | undefined {
  try {
    return find();
  } catch (error) {
    const what = error instanceof Absent ? `no ${error.message}` : (error as Error).message;
    process.emitWarning(
      `repnet does not know the net of Node ${process.version} (${what}): connections are plain, and nothing is replicated`,
      { type: 'RepnetWarning', code: 'REPNET_UNSUPPORTED' },
    );
    return undefined;
  }
}

const found = findOrWarn();

/**
 * Whether this version of Node is known. If not, `parts` is undefined, and nothing may be
 * replicated.
 */
export const supported = found !== undefined;
export const parts = found as Parts;
