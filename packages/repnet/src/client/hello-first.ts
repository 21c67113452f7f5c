/** RepSYN to a server of this library: the winner's hello, which goes before all that the application says. */
import { type Handle, nativeHandle, wantsNoDelay, write } from '../net-internals.js';
import { type Attachment, attach, detach, type Inner } from '../socket-internals.js';

/** Sends the hello: at once, or with what the application has written already. */
export function sendHelloFirst(socket: Inner, handle: Handle, hello: Buffer): void {
  if (socket._pendingData != null) return attach(socket, new HelloFirst(socket, handle, hello));
  write(handle, [hello], undefined);
  if (wantsNoDelay(socket)) return;
  // What the application says to 'connect' must not wait until the hello is acknowledged (Nagle).
  handle.setNoDelay(true);
  setImmediate(() => {
    if (nativeHandle(socket) === handle && !wantsNoDelay(socket)) handle.setNoDelay(false);
  });
}

/** The hello waits for the first write, which waits for 'connect'. Whoever takes the socket's handle before that gets no native one. */
class HelloFirst implements Attachment {
  readonly native = true;
  readonly flow = undefined;
  readonly paired = false;
  readonly #socket: Inner;
  readonly #handle: Handle;
  readonly #hello: Buffer;

  constructor(socket: Inner, handle: Handle, hello: Buffer) {
    this.#socket = socket;
    this.#handle = handle;
    this.#hello = hello;
  }

  /** The application writes: the hello goes in the same packet. */
  preface(): Buffer {
    detach(this.#socket);
    return this.#hello;
  }

  ending(): void {
    write(this.#handle, [this.preface()], undefined);
  }

  handOver(): boolean {
    this.ending();
    return true;
  }

  closed(): void {}

  connections(): [] {
    return [];
  }

  /** Not asked for: the native handle tells. */
  peername(): object {
    return {};
  }
  sockname(): object {
    return {};
  }
}
