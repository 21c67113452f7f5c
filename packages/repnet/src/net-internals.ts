/**
 * The few non-public properties of `net` this package relies on, all in one place, each checked when the module is loaded.
 * Present and alike in Node 20, 22 and 24.
 *
 * - `_handle` is an accessor of the prototype over a symbol-keyed slot. Overriding it lets a replicated socket keep its
 *   native handle from http and tls, which would otherwise read it past the replication.
 * - the handle points back to its socket by a symbol named 'owner_symbol'; moving a connected handle from one socket to
 *   another is setting slot and pointer (Node does the same when it tries several addresses).
 * - a handle reads into `onread` and takes request objects for writing and ending. Node keeps the classes of those to
 *   itself; a socket over a handle that only looks on gives them away.
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

type RequestClass = new () => Request;

const onlooker = {
  seen: undefined as Request | undefined,
  writeBuffer(request: Request) {
    onlooker.seen = request;
    return 0;
  },
  shutdown(request: Request) {
    onlooker.seen = request;
    return 1;
  },
  close() {},
} as unknown as Handle & { seen: Request | undefined };

function classSeen(): RequestClass {
  const { seen } = onlooker;
  if (seen === undefined) throw unknown();
  onlooker.seen = undefined;
  return seen.constructor as RequestClass;
}

const onlooking = new net.Socket({ handle: onlooker, manualStart: true } as net.SocketConstructorOpts);
onlooking._write(Buffer.alloc(1), 'buffer' as BufferEncoding, () => {});
export const WriteRequest = classSeen();
onlooking._final(() => {});
export const ShutdownRequest = classSeen();
const owner = symbolNamed(onlooker, 'owner_symbol') as symbol;
const netOnread = onlooker.onread as NonNullable<Handle['onread']>;
setNativeHandle(onlooking, null);
if (owner === undefined || typeof netOnread !== 'function') throw unknown();

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
