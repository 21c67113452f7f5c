/**
 * The `_handle` of a replicated socket: a native stream object whose bytes come from the flow and
 * go to it.
 *
 * Node's tls takes `_handle` from a connected `net.Socket` and works on it from C++. With one
 * copy's own handle it would read past the replication; with none it would wait for a 'connect'
 * that has long been. The class is the one that Node puts under tls for streams that are not
 * sockets. The object is made on first use, and carries bytes as long as native code takes them:
 * http finds `_consumed` true and keeps to the public 'data' events.
 */
import { Duplex } from 'node:stream';

/** The socket, as far as native code may use it. */
export interface BridgeTarget {
  /** Writes all parts; `done` when sent. */
  write(parts: Buffer[], done: (error?: Error | null) => void): void;
  end(done: (error?: Error | null) => void): void;
  close(done?: () => void): void;
  resume(): void;
  /** { address, family, port } of the flow's ends; tls asks the handle. */
  peername(): object;
  sockname(): object;
  /** Returns the system's error number, negative, for one more attempt to connect. */
  connectsAgain(): number;
  /** Gives bytes that native code did not consume to the stream. */
  give(chunk: Buffer | null): boolean;
}

interface NativeStream {
  readBuffer(chunk: Uint8Array): void;
  emitEOF(): void;
  finishWrite(req: object, status: number): void;
  finishShutdown(req: object, status: number): void;
  readStart(): number;
  readStop(): number;
  onread: (buffer: ArrayBuffer | undefined) => void;
  [name: string]: unknown;
}

let NativeStreamClass: (new () => NativeStream) | undefined;

/**
 * Returns the class behind Node's own wrapper for tls over arbitrary streams, by way of a public
 * constructor.
 */
function nativeStreamClass(): (new () => NativeStream) | undefined {
  if (NativeStreamClass === undefined) {
    let tls: typeof import('node:tls');
    try {
      tls = require('node:tls');
    } catch {
      return undefined; // built without crypto: nothing consumes handles then
    }
    const socket = new tls.TLSSocket(new Duplex({ read() {}, write: (_c, _e, done) => done() }));
    const wrapper = (socket as unknown as { _handle: { _parentWrap?: { _handle?: object } } })._handle
      ._parentWrap;
    NativeStreamClass = wrapper?._handle?.constructor as typeof NativeStreamClass;
    socket.destroy();
  }
  return NativeStreamClass;
}

const UV_EPIPE = -32;
/** The system's error for a connection that is bound once more. */
const UV_EINVAL = -22;

export class Bridge {
  readonly handle: NativeStream;
  readonly #target: BridgeTarget;
  /** Native code consumes the bytes, or may: false if it left the last ones alone. */
  active = true;
  /** Native code consumes the bytes. */
  taken = false;
  #defaulted = false;
  #stopped = false;
  #writing = false;
  #shutdown: object | undefined;

  static create(target: BridgeTarget): Bridge | undefined {
    const Class = nativeStreamClass();
    return Class === undefined ? undefined : new Bridge(new Class(), target);
  }

  private constructor(handle: NativeStream, target: BridgeTarget) {
    this.handle = handle;
    this.#target = target;
    const status = (error?: Error | null) =>
      error ? ((error as NodeJS.ErrnoException).errno ?? UV_EPIPE) : 0;
    const shutdown = (req: object) =>
      target.end((error) => setImmediate(() => handle.finishShutdown(req, status(error))));
    Object.assign(handle, {
      isClosing: () => false,
      onreadstart: () => {
        this.active = this.taken = true;
        this.#stopped = false;
        target.resume();
        return 0;
      },
      onreadstop: () => {
        this.#stopped = true;
        return 0;
      },
      onwrite: (req: object, parts: Buffer[]) => {
        this.#writing = true;
        target.write(parts, (error) => {
          setImmediate(() => {
            handle.finishWrite(req, status(error));
            this.#writing = false;
            const waiting = this.#shutdown;
            this.#shutdown = undefined;
            if (waiting !== undefined) shutdown(waiting);
          });
        });
        return 0;
      },
      onshutdown: (req: object) => {
        if (this.#writing) this.#shutdown = req;
        else shutdown(req);
        return 0;
      },
      onread: () => {
        this.#defaulted = true;
      },
      close: (done?: () => void) => target.close(done),
      getpeername: (out: object) => {
        Object.assign(out, target.peername());
        return 0;
      },
      getsockname: (out: object) => {
        Object.assign(out, target.sockname());
        return 0;
      },
      // net connects the handle that it finds.
      connect: () => target.connectsAgain(),
      connect6: () => target.connectsAgain(),
      bind: () => UV_EINVAL,
      bind6: () => UV_EINVAL,
      // Called by JavaScript only (http); native consumers go through onreadstart.
      readStart: () => 0,
      readStop: () => 0,
      reading: false,
    });
    // http takes only handles that nobody else consumes, tls and http2 any native stream.
    Object.defineProperties(handle, {
      isStreamBase: { value: true },
      _consumed: { value: true },
      // An http agent puts a guard here while the socket is idle, which must not take our place.
      onread: { value: undefined, writable: true },
    });
  }

  /** Native code may take the handle now, without a sign. */
  expect(): void {
    this.active = true;
  }

  /** Gives bytes (null: the end) to the consumer of the handle, or back to the stream. */
  deliver(chunk: Buffer | null): boolean {
    this.#defaulted = false;
    if (chunk === null) this.handle.emitEOF();
    else this.handle.readBuffer(chunk);
    this.taken = !this.#defaulted;
    if (this.taken) return !this.#stopped;
    this.active = false;
    return this.#target.give(chunk);
  }
}

/** A chunk that a stream hands down to be written. */
export interface Chunk {
  chunk: unknown;
  encoding: BufferEncoding | 'buffer';
}

/** Returns the bytes of `data`, which is text in `encoding` or bytes. */
export function asBuffer(data: unknown, encoding: BufferEncoding | 'buffer'): Buffer {
  return typeof data === 'string' ? Buffer.from(data, encoding as BufferEncoding) : (data as Buffer);
}

/** Returns the bytes of all chunks in one buffer. */
export function gather(chunks: Chunk[]): Buffer {
  return Buffer.concat(chunks.map(({ chunk, encoding }) => asBuffer(chunk, encoding)));
}
