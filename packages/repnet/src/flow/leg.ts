/**
 * An established TCP connection of a flow, over the native handle. Bytes go straight to the flow,
 * and writes straight to the system: a second copy needs no second set of buffers, events and
 * listeners.
 */

import { Buffer } from 'node:buffer';
import type { AddressInfo } from 'node:net';
import { getSystemErrorName } from 'node:util';
import { systemError } from '../errors.js';
import {
  type Handle,
  type Request,
  readFailure,
  ShutdownRequest,
  takeHandle,
  write,
} from '../net-internals.js';
import type { Copy } from './machine.js';

export interface LegSink {
  /** False: stop reading until `resumeReading`. */
  legData(leg: Leg, chunk: Buffer): boolean;
  legFin(leg: Leg): void;
  /**
   * Called instead of `legFin` and `legLost` if it does not matter how a connection ended; it is
   * closed already.
   */
  legGone?(leg: Leg): void;
  /**
   * The connection failed, or was closed by the system; called once at most, and never after
   * `close`, `abort` or `release`.
   */
  legLost(leg: Leg, error: NodeJS.ErrnoException | undefined): void;
}

/** The sink of a connection that nobody reads yet. */
export const nobody: LegSink = { legData: () => false, legFin: () => {}, legLost: () => {} };

type Done = (error?: Error | null) => void;

const UV_ENOTCONN = -107;

const kLeg = Symbol('repnet.leg');
const kDone = Symbol('repnet.done');

interface Pending extends Request {
  [kDone]?: Done;
}

interface Queue {
  readonly parts: Buffer[];
  readonly done: Done[];
}

/** Connections that have something to send at the end of this turn of the event loop. */
let due: Leg[] = [];

function flushDue(): void {
  const legs = due;
  due = [];
  let at = 0;
  try {
    while (at < legs.length) legs[at++]?.flush();
  } finally {
    // A callback of the application's has thrown: the other connections are sent later.
    while (at < legs.length) sendLater(legs[at++] as Leg);
  }
}

function sendLater(leg: Leg): void {
  if (due.push(leg) === 1) setImmediate(flushDue);
}

function onread(this: Handle, chunk?: ArrayBuffer): void {
  const leg = this[kLeg] as Leg;
  if (chunk !== undefined) {
    leg.received(chunk, this);
    return;
  }
  if (leg.sink?.legGone !== undefined) {
    const { sink } = leg;
    leg.close();
    sink.legGone?.(leg);
    return;
  }
  const error = readFailure();
  if (error === null) leg.sink?.legFin(leg);
  else leg.destroy(error);
}

function ignore(): void {}

/** Reports the outcome of one write to all callbacks from `at` on. */
function tell(all: readonly Done[], error: Error | null | undefined, at = 0): void {
  try {
    while (at < all.length) (all[at++] as Done)(error);
  } finally {
    // A callback of the application's has thrown: the others are called later.
    if (at < all.length) process.nextTick(tell, all, error, at);
  }
}

function failure(status: number, syscall: string): NodeJS.ErrnoException {
  const code = getSystemErrorName(status);
  return Object.assign(new Error(`${syscall} ${code}`), { code, errno: status, syscall });
}

function onwritten(this: Pending, status: number): void {
  const done = this[kDone];
  this[kDone] = undefined;
  done?.(status < 0 ? unfinished(this, status, 'write') : null);
}

function onshutdown(this: Pending, status: number): void {
  const done = this[kDone];
  this[kDone] = undefined;
  done?.(status < 0 ? unfinished(this, status, 'shutdown') : null);
}

/**
 * Returns why a request failed. If it was cancelled, the connection was lost under it: its error is
 * the better one.
 */
function unfinished(request: Pending, status: number, syscall: string): Error {
  const error = failure(status, syscall);
  if (error.code !== 'ECANCELED') return error;
  const leg = request.handle?.[kLeg] as Leg | undefined;
  return leg?.reason ?? systemError('ECONNRESET', syscall);
}

export class Leg {
  readonly copy: Copy;
  sink: LegSink | undefined;
  /** The connection is closed, lost or given away. */
  lost = false;
  /** The error that the connection failed of. */
  reason: Error | undefined;
  /** Reading was stopped because the application is behind. */
  stopped: boolean;
  /** Bytes given to the handle and not yet taken by the kernel. */
  backlog = 0;
  #handle: Handle | undefined;
  #bytesRead: number;
  /** FIN is to be sent after what is being written. */
  #finishing = false;
  #finished: (() => void) | undefined;
  #queue: Queue | undefined;
  /** The peer's address; set by a caller that knows it, to spare a system call. */
  peername: Partial<AddressInfo> | undefined;
  #sockname: Partial<AddressInfo> | undefined;

  /** `stopped`: reads nothing before `resumeReading`. The handle must be connected. */
  constructor(copy: Copy, sink: LegSink, handle: Handle, stopped = false) {
    this.copy = copy;
    this.sink = sink;
    this.stopped = stopped;
    this.#handle = handle;
    this.#bytesRead = handle.bytesRead;
    handle[kLeg] = this;
    handle.onread = onread;
    if (!stopped) this.#read(handle);
    else if (handle.reading) {
      handle.reading = false;
      handle.readStop();
    }
  }

  /** Takes the handle of a socket that net has made. */
  static of(socket: object, copy: Copy, sink: LegSink): Leg {
    return new Leg(copy, sink, takeHandle(socket));
  }

  #read(handle: Handle): void {
    if (handle.reading) return;
    handle.reading = true;
    const status = handle.readStart();
    if (status !== 0) this.destroy(failure(status, 'read'));
  }

  /**
   * Passes on received bytes. Node 26 gives more memory than it read into; the handle counts the
   * bytes.
   */
  received(chunk: ArrayBuffer, handle: Handle): void {
    const before = this.#bytesRead;
    this.#bytesRead = handle.bytesRead;
    this.receive(Buffer.from(chunk, 0, this.#bytesRead - before));
  }

  /** Passes on bytes of the peer, also those that were read before the sink was known. */
  receive(chunk: Buffer): void {
    const { sink } = this;
    if (sink === undefined || sink.legData(this, chunk)) return;
    this.stopped = true;
    const handle = this.#handle;
    if (handle?.reading) {
      handle.reading = false;
      handle.readStop();
    }
  }

  resumeReading(): void {
    if (!this.stopped || this.lost) return;
    this.stopped = false;
    if (this.#handle !== undefined) this.#read(this.#handle);
  }

  /**
   * Sends `parts` at the end of this turn of the event loop, in one system call with all that is
   * posted until then. The wait costs little, since the other copy carries the same bytes at once.
   */
  post(parts: readonly Buffer[], done: Done | undefined): void {
    const queue = this.#queue;
    if (queue === undefined) {
      this.#queue = { parts: parts.slice(), done: done === undefined ? [] : [done] };
      sendLater(this);
      return;
    }
    for (const part of parts) queue.parts.push(part);
    if (done !== undefined) queue.done.push(done);
  }

  flush(): void {
    const queue = this.#queue;
    if (queue === undefined) return;
    this.#queue = undefined;
    const { parts, done } = queue;
    const [only = ignore] = done;
    this.#write(parts, done.length <= 1 ? only : (error) => tell(done, error));
  }

  /**
   * Sends `parts` now, after those that are posted. Calls `done` when the kernel has them, or with
   * the error.
   */
  send(parts: readonly Buffer[], done: Done): void {
    const queue = this.#queue;
    if (queue === undefined) return this.#write(parts, done);
    for (const part of parts) queue.parts.push(part);
    queue.done.push(done);
    this.flush();
  }

  /** Writes `parts` in at most one system call. */
  #write(parts: readonly Buffer[], done: Done): void {
    const handle = this.#handle;
    if (handle === undefined) {
      done(this.reason ?? systemError('EPIPE', 'write'));
      return;
    }
    const written = write(handle, parts, onwritten);
    if (typeof written !== 'number') (written as Pending)[kDone] = done;
    else done(written === 0 ? null : failure(written, 'write'));
  }

  /** Sends FIN after the bytes written so far. */
  finish(done: Done): void {
    this.flush();
    const handle = this.#handle;
    if (handle === undefined) return done();
    const request = new ShutdownRequest() as Pending;
    request.handle = handle;
    request.oncomplete = onshutdown;
    request[kDone] = (error) => {
      this.#finishing = false;
      this.#finished?.();
      done(error);
    };
    const status = handle.shutdown(request);
    if (status === 0) {
      this.#finishing = true;
      return;
    }
    done(status === 1 || status === UV_ENOTCONN ? null : failure(status, 'shutdown'));
  }

  /** The connection has failed. */
  destroy(error?: Error): void {
    if (this.lost) return;
    this.lost = true;
    this.reason = error;
    this.#close(false);
    this.sink?.legLost(this, error);
  }

  /**
   * Calls `then` when the system has taken all bytes and the end; at once if no end is under way.
   */
  whenFinished(then: () => void): void {
    if (this.#finishing) this.#finished = then;
    else then();
  }

  /**
   * Closes the connection, by FIN, or by RST if bytes of the peer's are unread. The sink hears
   * nothing more.
   */
  close(): void {
    this.flush();
    this.lost = true;
    this.sink = undefined;
    this.#close(false);
  }

  /** Closes the connection by RST. */
  abort(): void {
    this.flush();
    this.lost = true;
    this.sink = undefined;
    this.#close(true);
  }

  #close(reset: boolean): void {
    const handle = this.#handle;
    if (handle === undefined) return;
    this.#handle = undefined;
    handle.onread = ignore;
    // A handle that is shutting down cannot be reset, and a failed reset leaves a handle that
    // cannot be closed.
    if (reset && !this.#finishing) handle.reset();
    else handle.close();
  }

  /** Returns the handle, which is no longer this connection's. */
  release(): Handle {
    this.flush();
    const handle = this.#handle as Handle;
    this.#handle = undefined;
    this.lost = true;
    this.sink = undefined;
    handle[kLeg] = undefined;
    return handle;
  }

  // --------------------------------------------------------------- what a socket's options concern

  ref(): this {
    this.#handle?.ref();
    return this;
  }
  unref(): this {
    this.#handle?.unref();
    return this;
  }
  /** Like the methods of a handle: these return 0 or an error number. */
  setNoDelay(on: boolean): number {
    return this.#handle?.setNoDelay(on) ?? 0;
  }
  setKeepAlive(...how: Parameters<Handle['setKeepAlive']>): number {
    return this.#handle?.setKeepAlive(...how) ?? 0;
  }
  setTypeOfService(value: number): number {
    return this.#handle?.setTypeOfService?.(value) ?? 0;
  }

  /** Bytes given to the handle that the system has not taken yet. */
  get unsent(): number {
    return this.#handle?.writeQueueSize ?? 0;
  }

  /** Returns whether nothing has come on the connection, not even an answer. */
  get unheard(): boolean {
    return this.#bytesRead === 0;
  }

  /** The descriptor of the connection, if the system has one. */
  get fd(): number | undefined {
    return this.#handle?.fd;
  }

  get #peer(): Partial<AddressInfo> {
    if (this.peername === undefined && this.#handle !== undefined) {
      const peername = {};
      if (this.#handle.getpeername(peername) === 0) this.peername = peername;
    }
    return this.peername ?? {};
  }
  get remoteAddress(): string | undefined {
    return this.#peer.address;
  }
  get remotePort(): number | undefined {
    return this.#peer.port;
  }
  get remoteFamily(): string | undefined {
    return this.#peer.family;
  }

  get #local(): Partial<AddressInfo> {
    if (this.#sockname === undefined && this.#handle !== undefined) {
      const sockname = {};
      if (this.#handle.getsockname(sockname) === 0) this.#sockname = sockname;
    }
    return this.#sockname ?? {};
  }
  get localAddress(): string | undefined {
    return this.#local.address;
  }
  get localPort(): number | undefined {
    return this.#local.port;
  }
  get localFamily(): string | undefined {
    return this.#local.family;
  }
}
