import { type Channel, channel } from 'node:diagnostics_channel';
import * as net from 'node:net';
import { askConnectFailure, askReadFailure, measureConnect, parts, supported } from './net-parts.js';

/**
 * A native TCP connection. Results are 0 or a negative error number of libuv, unless said
 * otherwise.
 */
export interface Handle {
  reading?: boolean;
  bytesRead: number;
  bytesWritten: number;
  /** Bytes that the system has not taken yet. */
  writeQueueSize?: number;
  /** The descriptor; -1 before there is one, and on Windows. */
  fd?: number;
  /** Called with received bytes; without any, at the end or on an error. */
  onread?: (this: Handle, chunk?: ArrayBuffer) => void;
  /** Binds. An error may come with the result of `connect` instead. */
  bind(address: string, port: number): number;
  bind6(address: string, port: number, flags: number): number;
  connect(request: ConnectRequest, address: string, port: number): number;
  connect6(request: ConnectRequest, address: string, port: number): number;
  readStart(): number;
  readStop(): number;
  /** Writes bytes. Handles that make requests themselves take null, and may return the request. */
  writeBuffer(request: Request | null, bytes: Buffer): number | Request;
  writev(request: Request | null, parts: readonly Buffer[], allBuffers: true): number | Request;
  /** 1: done at once. */
  shutdown(request: Request): number;
  close(done?: () => void): void;
  /** Closes by RST. */
  reset(done?: () => void): number;
  ref(): void;
  unref(): void;
  setNoDelay(on: boolean): number;
  /**
   * Seconds before the first probe and between probes, and their number; the system's own where
   * undefined.
   */
  setKeepAlive(on: boolean, seconds: number, interval?: number, count?: number): number;
  setTypeOfService?(value: number): number;
  getpeername(out: object): number;
  getsockname(out: object): number;
  [key: symbol]: unknown;
}

/** A write or the end of a stream, under way. */
export interface Request {
  handle?: Handle;
  /** Keeps the bytes from the collector. */
  buffer?: unknown;
  oncomplete?: (status: number) => void;
}

/** A connection that is being made; net names its addresses in errors. */
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
  return parts.getHandle.call(socket) as Handle | null;
}

export function setNativeHandle(socket: object, handle: Handle | null): void {
  parts.setHandle.call(socket, handle);
}

/** Takes the handle of a socket. */
export function takeHandle(socket: object): Handle {
  const handle = nativeHandle(socket) as Handle;
  setNativeHandle(socket, null);
  return handle;
}

/**
 * Runs `work`, in which a socket of net's gets a handle, without net's reset of the socket's state:
 * it may have been ended before it was connected.
 */
export function keepingState(socket: object, work: () => void): void {
  const shadow = socket as { _undestroy?: () => void };
  shadow._undestroy = () => {};
  try {
    work();
  } finally {
    delete shadow._undestroy;
  }
}

/**
 * Gives a connected handle to a socket without one, which is a native socket in every respect then.
 */
export function giveHandle(handle: Handle, to: net.Socket): void {
  const { reinitialize, owner, onread } = parts;
  if (reinitialize !== undefined) {
    keepingState(to, () => (to as unknown as Record<symbol, (h: Handle) => void>)[reinitialize]?.(handle));
    return;
  }
  setNativeHandle(to, handle);
  handle[owner] = to;
  handle.onread = onread;
}

const kToldPort = Symbol('repnet.toldPort');

function getsocknameTold(this: Handle, out: { port?: number }): number {
  const status = (parts.Handle.prototype as Handle).getsockname.call(this, out);
  if (status === 0) out.port = this[kToldPort] as number;
  return status;
}

/**
 * Makes a handle name `port` as its own: to net, and to tls, which asks the handle and not its
 * socket.
 */
export function tellOwnPort(handle: Handle, port: number): void {
  handle[kToldPort] = port;
  handle.getsockname = getsocknameTold;
}

/** The error of writing after the end. */
const UV_EPIPE = -32;

/**
 * Writes `bytes`. Returns 0, an error number, or the request if the system has not taken all bytes:
 * its `oncomplete` will be called.
 */
export function write(
  handle: Handle,
  bytes: readonly Buffer[],
  oncomplete: Request['oncomplete'],
): Request | number {
  if (parts.WriteRequest !== undefined) {
    const given = new parts.WriteRequest();
    prepareRequest(given, handle, bytes, oncomplete);
    const status = hand(handle, given, bytes) as number;
    return status === 0 && (handle.writeQueueSize ?? 0) > 0 ? given : status;
  }
  const before = handle.writeQueueSize ?? 0;
  const result = hand(handle, null, bytes);
  if (typeof result === 'number') return result;
  prepareRequest(result, handle, bytes, oncomplete);
  // A request that adds nothing to waiting bytes has failed, and is never completed.
  if ((handle.writeQueueSize ?? 0) > before) return result;
  return before === 0 ? 0 : UV_EPIPE;
}

function hand(handle: Handle, request: Request | null, bytes: readonly Buffer[]): number | Request {
  return bytes.length === 1
    ? handle.writeBuffer(request, bytes[0] as Buffer)
    : handle.writev(request, bytes, true);
}

function prepareRequest(
  request: Request,
  handle: Handle,
  bytes: readonly Buffer[],
  oncomplete: Request['oncomplete'],
): void {
  request.handle = handle;
  request.buffer = bytes;
  request.oncomplete = oncomplete;
}

export const { ConnectRequest, ShutdownRequest } = supported
  ? parts
  : ({} as Pick<typeof parts, 'ConnectRequest' | 'ShutdownRequest'>);

/**
 * The settings of `setNoDelay` and `setKeepAlive` that net keeps in a socket, also before there is
 * a handle.
 */
interface Settings {
  [field: symbol]: boolean | number | undefined;
}

/**
 * Gives a new connection the settings of its socket, as net does. `noDelay`: sets that in any case.
 */
export function applySettings(socket: object, handle: Handle, noDelay = false): void {
  const settings = socket as Settings;
  const read = (field: symbol | undefined) => (field === undefined ? undefined : settings[field]) as never;
  if (noDelay || read(parts.noDelay)) handle.setNoDelay(true);
  if (read(parts.keepAlive)) {
    // Before Node 26 there is nothing else to set.
    if (parts.keepAliveInterval === undefined) handle.setKeepAlive(true, read(parts.keepAliveDelay));
    else
      handle.setKeepAlive(
        true,
        read(parts.keepAliveDelay),
        read(parts.keepAliveInterval),
        read(parts.keepAliveCount),
      );
  }
  const service = read(parts.typeOfService);
  if (service !== undefined) handle.setTypeOfService?.(service);
}

/** Returns whether the application has set `noDelay`, by the method or the constructor. */
export function wantsNoDelay(socket: object): boolean {
  return Boolean((socket as Settings)[parts.noDelay]);
}

/** Returns whether a connection that was established has failed, and has no peer any more. */
export function isBroken(handle: Handle): boolean {
  return handle.getpeername({}) !== 0;
}

/** Returns a handle for a new connection. */
export function newHandle(): Handle {
  return new parts.Handle(0);
}

/**
 * Returns net's error for a connection that failed with this status, after net's events before it.
 */
export function connectFailure(
  status: number,
  request: ConnectRequest,
  emit: (event: string, args: unknown[]) => void,
): NodeJS.ErrnoException | undefined {
  return askConnectFailure(parts, status, request, emit);
}

/**
 * Reports a connection that is established to perf_hooks. `startTime`: when it began, by
 * `performance.now()`.
 */
export function noteConnect(host: string, port: number, startTime: number): void {
  measureConnect(parts, { host, port }, startTime);
}

/** Whether net emits 'connectionAttempt'. */
export const tellsAttempts: boolean = supported && parts.tellsAttempts;

/** Keeps sockets of this class from reporting their connection to perf_hooks. */
export function measuresNothing(prototype: object): void {
  if (supported && parts.measured !== undefined)
    Object.defineProperty(prototype, parts.measured, { get: () => undefined, set: () => {} });
}

/**
 * Returns why `onread` was called without bytes, whose number only net can read; null: the peer has
 * ended the stream.
 */
export function readFailure(): NodeJS.ErrnoException | null {
  return askReadFailure(parts);
}

/** Returns a listening handle on which net accepts for `server`, which need not own the handle. */
export function acceptingFor<T extends object>(server: object): T {
  return { [parts.owner]: server } as T;
}

/** The channel on which net publishes each client's socket. */
const clientSocket = channel('net.client.socket');
/** Whether net publishes in `net.connect`, or (later versions) in the socket's `connect`. */
const isToldByModule = String(net.connect).includes('.publish(');

/**
 * Publishes a socket that is about to connect and that net does not publish. `by`: the function
 * that is called for it.
 */
export function tellClientSocket(socket: object, by: 'module' | 'socket'): void {
  if (clientSocket.hasSubscribers && isToldByModule === (by === 'module')) clientSocket.publish({ socket });
}

/** Runs `connect`, in which net connects `socket`, without net's message on the channel. */
export function untold(socket: object, connect: () => void): void {
  silence(clientSocket, 'socket', socket, connect);
}

/** The channel on which net publishes that a server is to listen: not in Node 20. */
const serverListens = channel('tracing:net.server.listen:asyncStart');

/**
 * Runs `listen`, in which net begins to listen with `server`, without net's message on the channel.
 */
export function untoldServer(server: object, listen: () => void): void {
  silence(serverListens, 'server', server, listen);
}

/** Runs `work`, and drops messages on `on` whose property `of` is `subject`. */
function silence(on: Channel, of: string, subject: object, work: () => void): void {
  if (!on.hasSubscribers) return work();
  const before = Object.getOwnPropertyDescriptor(on, 'publish');
  const { publish } = on;
  // Messages of the application's, whose resolver may publish meanwhile, pass.
  on.publish = (message) => {
    if (Reflect.get(message as object, of) !== subject) publish.call(on, message);
  };
  try {
    work();
  } finally {
    if (before === undefined) Reflect.deleteProperty(on, 'publish');
    else Object.defineProperty(on, 'publish', before);
  }
}

/**
 * Makes `instanceof` of a class of ours hold for instances of net's class, too, which Node's own
 * modules make. Subclasses differ from one another as usual.
 */
export function countAsInstances(ours: object, nets: { prototype: object }): void {
  Object.defineProperty(ours, Symbol.hasInstance, {
    value(this: unknown, value: unknown): boolean {
      if (this === ours) return Object.prototype.isPrototypeOf.call(nets.prototype, value as object);
      return Function.prototype[Symbol.hasInstance].call(this as never, value);
    },
  });
}
