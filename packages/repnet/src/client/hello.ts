/** Hellos: the first bytes on a second connection, and on the connection that won a race. */

import type { Leg } from '../flow/leg.js';
import { type Handle, nativeHandle, wantsNoDelay, write } from '../net-internals.js';
import { attach, type DialTarget, detach, Flowless, type Inner, setSkew } from '../socket-internals.js';
import { encodeHello, HelloFlag, Kind } from '../wire.js';
import { newToken } from './dialing.js';

/** Returns the hello of RepFlow's second connection, `leg`. */
export function flowHello(
  { net, replication }: DialTarget,
  leg: Pick<Leg, 'localAddress' | 'localPort' | 'remoteAddress'>,
): Buffer {
  return encodeHello({
    kind: Kind.replica,
    flags: 0,
    threshold: replication.threshold,
    token: newToken(),
    sourceAddress: leg.localAddress ?? '',
    sourcePort: leg.localPort ?? 0,
    targetAddress: leg.remoteAddress ?? '',
    targetPort: net.port,
    patience: replication.copyDelay + replication.pairTimeout,
  });
}

/** Returns the hello of a RepSYN connection that has won, or (`Kind.prove`) may win. */
export function raceHello(target: DialTarget, kind: number): Buffer {
  return encodeHello({
    kind,
    flags: HelloFlag.early,
    threshold: target.replication.threshold,
    token: newToken(),
    // The server pairs it with nothing.
    sourceAddress: '',
    sourcePort: 0,
    targetAddress: '',
    targetPort: target.net.port,
    patience: 0,
  });
}

/** Sends the hello at once, or with the bytes that the application has written already. */
export function sendHelloFirst(socket: Inner, handle: Handle, hello: Buffer): void {
  setSkew(socket, handle.bytesRead, handle.bytesWritten);
  if (socket._pendingData != null) return attach(socket, new HelloFirst(socket, handle, hello));
  say(socket, handle, hello);
  if (wantsNoDelay(socket)) return;
  // The application's first bytes must not wait until the hello is acknowledged (Nagle).
  handle.setNoDelay(true);
  setImmediate(() => {
    if (nativeHandle(socket) === handle && !wantsNoDelay(socket)) handle.setNoDelay(false);
  });
}

/** Sends the hello, whose bytes the handle counts, but not as the application's. */
function say(socket: Inner, handle: Handle, hello: Buffer): void {
  setSkew(socket, handle.bytesRead, handle.bytesWritten + hello.length);
  write(handle, [hello], undefined);
}

/**
 * Sends the hello with the first write, which waits for 'connect'. The socket shows no native
 * handle before.
 */
class HelloFirst extends Flowless {
  readonly native = true;
  readonly #socket: Inner;
  readonly #handle: Handle;
  readonly #hello: Buffer;

  constructor(socket: Inner, handle: Handle, hello: Buffer) {
    super();
    this.#socket = socket;
    this.#handle = handle;
    this.#hello = hello;
  }

  /** The application writes: the hello goes in the same packet. */
  preface(): Buffer {
    detach(this.#socket);
    setSkew(this.#socket, this.#handle.bytesRead, this.#handle.bytesWritten + this.#hello.length);
    return this.#hello;
  }

  ending(): void {
    detach(this.#socket);
    say(this.#socket, this.#handle, this.#hello);
  }

  /**
   * The socket is destroyed with the bytes that the application has written; the server still gets
   * the hello.
   */
  closing(): void {
    say(this.#socket, this.#handle, this.#hello);
  }

  handOver(): boolean {
    this.ending();
    return true;
  }
}
