/**
 * The few non-public properties of `net` this package relies on, all in one place, each checked when the module is loaded.
 * Present and alike in Node 20, 22 and 24.
 *
 * - `_handle` is an accessor of the prototype over a symbol-keyed slot. Overriding it lets a replicated socket keep its
 *   native handle from http and tls, which would otherwise read it past the replication.
 * - the handle points back to its socket by a symbol named 'owner_symbol'; moving a connected handle from one socket to
 *   another is setting slot and pointer (Node does the same when it tries several addresses).
 * - a handle reads into `onread` and takes request objects for connecting, writing and ending. Node keeps the classes of
 *   those, and of handles, to itself; a socket over a handle that only looks on gives them away.
 */
import net from 'node:net';

const descriptor = Object.getOwnPropertyDescriptor(net.Socket.prototype, '_handle');
if (descriptor?.get === undefined || descriptor.set === undefined) throw unknown();
const { get, set } = descriptor;

function unknown(): Error {
  return new Error(`repnet does not know the net.Socket of Node ${process.version}`);
}

/** A native TCP connection. Results are 0 or a negative error number of libuv, unless said otherwise. */
export interface Handle {
  reading?: boolean;
  bytesRead: number;
  bytesWritten: number;
  /** Bytes that the system has not taken yet. */
  writeQueueSize?: number;
  /** The descriptor; -1 before there is one, and on Windows. */
  fd?: number;
  /** Called with what was read; without, at the end or on an error. */
  onread?: (this: Handle, chunk?: ArrayBuffer) => void;
  /** An error of it may also come with the result of `connect`. */
  bind(address: string, port: number): number;
  bind6(address: string, port: number, flags: number): number;
  connect(request: ConnectRequest, address: string, port: number): number;
  connect6(request: ConnectRequest, address: string, port: number): number;
  readStart(): number;
  readStop(): number;
  writeBuffer(request: Request, bytes: Buffer): number;
  writev(request: Request, parts: readonly Buffer[], allBuffers: true): number;
  /** 1: done at once. */
  shutdown(request: Request): number;
  close(done?: () => void): void;
  /** Closes by RST. */
  reset(done?: () => void): number;
  ref(): void;
  unref(): void;
  setNoDelay(on: boolean): number;
  setKeepAlive(on: boolean, seconds: number): number;
  getpeername(out: object): number;
  getsockname(out: object): number;
  getAsyncId?(): number;
  [key: symbol]: unknown;
}

/** A write or the end of a stream, under way. */
export interface Request {
  handle?: Handle;
  /** Keeps the bytes from the collector. */
  buffer?: unknown;
  oncomplete?: (status: number) => void;
}

/** A connection being made; net tells an error by the addresses in it. */
export interface ConnectRequest {
  address?: string;
  port?: number;
  addressType?: number;
  localAddress?: string | undefined;
  localPort?: number | undefined;
  oncomplete?: (
    status: number,
    handle: Handle,
    request: ConnectRequest,
    readable: boolean,
    writable: boolean,
  ) => void;
  [key: symbol]: unknown;
}

export function nativeHandle(socket: object): Handle | null {
  return get.call(socket) as Handle | null;
}

export function setNativeHandle(socket: object, handle: Handle | null): void {
  set.call(socket, handle);
}

/** The socket's handle, which it no longer has. */
export function takeHandle(socket: object): Handle {
  const handle = nativeHandle(socket) as Handle;
  setNativeHandle(socket, null);
  return handle;
}

/** The socket's own name for a field that Node keeps to itself. */
function symbolNamed(object: object, name: string): symbol | undefined {
  for (let o: object | null = object; o !== null; o = Object.getPrototypeOf(o))
    for (const symbol of Object.getOwnPropertySymbols(o)) if (symbol.description === name) return symbol;
  return undefined;
}

const reinitialize = symbolNamed(net.Socket.prototype, 'kReinitializeHandle');

/** Gives a connected handle to a socket that has none; it then is a native socket in every respect. */
export function giveHandle(handle: Handle, to: net.Socket): void {
  if (reinitialize !== undefined) {
    // It also resets the stream's state, which may hold an 'end' called before the connection was made.
    const shadow = to as unknown as { _undestroy?: () => void };
    shadow._undestroy = () => {};
    (to as unknown as Record<symbol, (h: Handle) => void>)[reinitialize]?.(handle);
    delete shadow._undestroy;
    return;
  }
  setNativeHandle(to, handle);
  handle[owner] = to;
  handle.onread = netOnread;
}

/** A handle that does nothing but keep the request that a socket of net's gave it last. */
class Onlooker {
  onread: Handle['onread'];
  [key: symbol]: unknown;
  #seen: object | undefined;

  connect(request: object): number {
    this.#seen = request;
    return 0;
  }
  writeBuffer(request: object): number {
    this.#seen = request;
    return 0;
  }
  shutdown(request: object): number {
    this.#seen = request;
    return 1;
  }
  close(): void {}

  take<T extends object>(): T {
    const seen = this.#seen;
    if (seen === undefined) throw unknown();
    this.#seen = undefined;
    return seen as T;
  }
}

function classOf<Arguments extends unknown[], T extends object>(object: T): new (...args: Arguments) => T {
  return object.constructor as new (
    ...args: Arguments
  ) => T;
}

const onlooker = new Onlooker();
const onlooking = new net.Socket({ handle: onlooker, manualStart: true } as net.SocketConstructorOpts);
onlooking._write(Buffer.alloc(1), 'buffer' as BufferEncoding, () => {});
export const WriteRequest = classOf<[], Request>(onlooker.take());
onlooking._final(() => {});
export const ShutdownRequest = classOf<[], Request>(onlooker.take());
const owner = symbolNamed(onlooker, 'owner_symbol') as symbol;
const netOnread = onlooker.onread as NonNullable<Handle['onread']>;
setNativeHandle(onlooking, null);
if (owner === undefined || typeof netOnread !== 'function') throw unknown();

/** A socket that makes itself a handle to connect with, and connects with the onlooker instead. */
let made: Handle | undefined;
const connecting = Object.defineProperty(new net.Socket(), '_handle', {
  get: () => (made === undefined ? null : onlooker),
  set: (handle: Handle) => {
    made ??= handle;
  },
});
connecting.connect({
  host: 'nowhere.invalid',
  port: 1,
  autoSelectFamily: false,
  lookup: (_host, _options, done) => done(null, '127.0.0.1', 4),
});
if (made === undefined) throw unknown();
const NativeHandle = classOf<[kind: number], Handle>(made);
(made as Handle).close();
const connectRequest = onlooker.take<ConnectRequest>();
export const ConnectRequest = classOf<[], ConnectRequest>(connectRequest);
const netOnconnect = connectRequest.oncomplete as NonNullable<ConnectRequest['oncomplete']>;
if (typeof netOnconnect !== 'function') throw unknown();

const fresh = new net.Socket();
const kNoDelay = symbolNamed(fresh, 'kSetNoDelay') as symbol;
const kKeepAlive = symbolNamed(fresh, 'kSetKeepAlive') as symbol;
const kKeepAliveDelay = symbolNamed(fresh, 'kSetKeepAliveInitialDelay') as symbol;
if (kNoDelay === undefined || kKeepAlive === undefined || kKeepAliveDelay === undefined) throw unknown();

/** What net keeps of `setNoDelay` and `setKeepAlive` (and of the constructor's options), also before there is a handle. */
interface Settings {
  [field: symbol]: boolean | number;
}

/**
 * Gives a connection that has just been established what the application has set on its socket, as net does. `noDelay`: in any
 * case.
 */
export function applySettings(socket: object, handle: Handle, noDelay = false): void {
  const settings = socket as Settings;
  if (noDelay || settings[kNoDelay]) handle.setNoDelay(true);
  if (settings[kKeepAlive]) handle.setKeepAlive(true, settings[kKeepAliveDelay] as number);
}

/** `socket.setNoDelay(on)` of a socket without a handle. True: that is a change. */
export function changeNoDelay(socket: object, on: boolean): boolean {
  const settings = socket as Settings;
  const before = settings[kNoDelay];
  settings[kNoDelay] = on;
  return before !== on;
}

/** `socket.setKeepAlive(on, seconds)` of a socket without a handle. True: that is a change. */
export function changeKeepAlive(socket: object, on: boolean, seconds: number): boolean {
  const settings = socket as Settings;
  const before = settings[kKeepAlive];
  if (before === on && !(on && settings[kKeepAliveDelay] !== seconds)) return false;
  settings[kKeepAlive] = on;
  settings[kKeepAliveDelay] = seconds;
  return true;
}

/** A handle for a connection to be made. */
export function newHandle(): Handle {
  return new NativeHandle(0);
}

/** Asks net what it would say of a connection that failed with this status: the error, and events before it. */
export function connectFailure(
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
  netOnconnect.call(request, status, { [owner]: asking } as unknown as Handle, request, false, false);
  return failure;
}

/** A listening handle on which net accepts for `server`, which need not be the server whose handle it is. */
export function acceptingFor<T extends object>(server: object): T {
  return { [owner]: server } as T;
}

/** Asks net why `onread` was called without bytes: it alone can read the number. Null: the peer has ended the stream. */
export function readFailure(): NodeJS.ErrnoException | null {
  netOnread.call(inquiry);
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
  push: { value: () => false },
  read: { value: () => null },
  destroy: {
    value: (error: NodeJS.ErrnoException) => {
      inquirer.error = error;
    },
  },
}) as { error: NodeJS.ErrnoException | null };
const inquiry = { [owner]: inquirer } as unknown as Handle;
