/**
 * One TCP connection of a flow. A `net.Socket` whose stream machinery is bypassed: bytes go straight to the flow and
 * writes straight to the handle, so that a second copy costs no second set of buffers, events and listeners.
 */
import net from 'node:net';
import { nativeHandle } from '../net-internals.js';
import type { Copy } from './machine.js';

export interface LegSink {
  /** The connection is established (client side). */
  legOpen(leg: Leg): void;
  /** False: stop reading until `resumeReading`. */
  legData(leg: Leg, chunk: Buffer): boolean;
  legFin(leg: Leg): void;
  /** The connection failed or was closed under us; at most once, and never after `close`, `reset` or `drop`. */
  legLost(leg: Leg, error: NodeJS.ErrnoException | undefined): void;
  /** Other events of the connection attempt ('lookup', 'connectionAttempt' …). */
  legEvent(leg: Leg, event: string, args: unknown[]): void;
}

const { prototype } = net.Socket;
type WriteCallback = (error?: Error | null) => void;

function prepare(leg: Leg, copy: Copy, sink: LegSink): void {
  leg.copy = copy;
  leg.sink = sink;
  leg.lost = false;
  leg.stopped = false;
  leg.ending = false;
  leg.finishing = false;
  leg.backlog = 0;
}

export class Leg extends net.Socket {
  // Declared, not defined: an accepted socket becomes a leg by its prototype and has no field initialisers run.
  declare copy: Copy;
  declare sink: LegSink | undefined;
  /** No further news of this connection is wanted or possible. */
  declare lost: boolean;
  /** Reading was stopped because the application is behind. */
  declare stopped: boolean;
  /** FIN is sent; read until the peer's. */
  declare ending: boolean;
  /** FIN is to be sent after what is being written. */
  declare finishing: boolean;
  /** Bytes given to the handle and not yet taken by the kernel. */
  declare backlog: number;

  constructor(copy: Copy, sink: LegSink, options: net.SocketConstructorOpts) {
    super(options);
    prepare(this, copy, sink);
  }

  /** Turns an accepted `net.Socket`, whose handle is reading already, into a leg. */
  static adopt(socket: net.Socket, copy: Copy, sink: LegSink): Leg {
    Object.setPrototypeOf(socket, Leg.prototype);
    prepare(socket as Leg, copy, sink);
    return socket as Leg;
  }

  override push(chunk: Buffer | null): boolean {
    const sink = this.sink;
    if (sink === undefined) return true;
    if (chunk === null) {
      sink.legFin(this);
      return false;
    }
    if (sink.legData(this, chunk)) return true;
    this.stopped = true;
    return false;
  }

  // biome-ignore lint/suspicious/noExplicitAny: the signature of EventEmitter
  override emit(event: string | symbol, ...args: any[]): boolean {
    switch (event) {
      case 'connect':
        this.sink?.legOpen(this);
        return true;
      case 'lookup':
      case 'connectionAttempt':
      case 'connectionAttemptFailed':
      case 'connectionAttemptTimeout':
        this.sink?.legEvent(this, event, args);
        return true;
      default:
        return (prototype.emit as (...a: unknown[]) => boolean).call(this, event, ...args);
    }
  }

  /** Node starts no reading when the connection is established; the flow does, when the application reads. */
  override isPaused(): boolean {
    return true;
  }

  /** What Node calls when the connection fails. */
  override destroy(error?: Error): this {
    const news = !this.lost;
    this.lost = true;
    prototype.destroy.call(this);
    if (news) this.sink?.legLost(this, error);
    return this;
  }

  resumeReading(): void {
    if (!this.stopped || this.lost) return;
    this.stopped = false;
    prototype._read.call(this, 0);
  }

  /** Writes one buffer. `done` is called when the kernel has it, or with the error. */
  send(bytes: Buffer, done: WriteCallback): void {
    prototype._write.call(this, bytes, 'buffer' as BufferEncoding, done);
  }

  /** Writes several buffers with one system call. */
  sendAll(parts: Buffer[], done: WriteCallback): void {
    const chunks = parts.map((chunk) => ({ chunk, encoding: 'buffer' as BufferEncoding }));
    (chunks as unknown as { allBuffers: boolean }).allBuffers = true;
    prototype._writev?.call(this, chunks, done);
  }

  /** Sends FIN after what has been written. */
  finish(done: WriteCallback): void {
    this.finishing = true;
    prototype._final.call(this, (error) => {
      this.finishing = false;
      done(error);
    });
  }

  /** Closes the connection, without further news of it: FIN, or RST if the peer's bytes are still unread. */
  close(): void {
    this.lost = true;
    this.sink = undefined;
    prototype.destroy.call(this);
  }

  /** Closes the connection by RST; quietly, if it is not established. */
  abort(): void {
    const established = !this.lost && !this.connecting && !this.pending;
    this.lost = true;
    this.sink = undefined;
    // A handle that is shutting down cannot be reset: Node would report an error and leave it open.
    if (established && !this.finishing) this.resetAndDestroy();
    else prototype.destroy.call(this);
  }

  /**
   * Closes a connection that nothing was sent on by RST, also one that the kernel has established while Node still takes
   * it for connecting; silently, if it is not established.
   */
  refuse(): void {
    const handle = this.connecting ? nativeHandle(this) : null;
    // Without a descriptor there is nothing to reset.
    if (handle !== null && (handle.fd ?? -1) >= 0) handle.reset?.();
    this.abort();
  }
}
