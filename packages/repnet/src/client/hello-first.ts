/** RepSYN to a server of this library: the winner's hello, which goes before all that the application says. */
import { type Handle, nativeHandle, wantsNoDelay, write } from '../net-internals.js';
import { type Attachment, attach, detach, type Inner, setSkew } from '../socket-internals.js';

/** Sends the hello: at once, or with what the application has written already. */
export function sendHelloFirst(socket: Inner, handle: Handle, hello: Buffer): void {
  setSkew(socket, handle.bytesRead, handle.bytesWritten);
  if (socket._pendingData != null) return attach(socket, new HelloFirst(socket, handle, hello));
  say(socket, handle, hello);
  if (wantsNoDelay(socket)) return;
  // What the application says to 'connect' must not wait until the hello is acknowledged (Nagle).
  handle.setNoDelay(true);
  setImmediate(() => {
    if (nativeHandle(socket) === handle && !wantsNoDelay(socket)) handle.setNoDelay(false);
  });
}

/** Bytes of the hello are none of the application's, from when the handle counts them. */
function say(socket: Inner, handle: Handle, hello: Buffer): void {
  setSkew(socket, handle.bytesRead, handle.bytesWritten + hello.length);
  write(handle, [hello], undefined);
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
    setSkew(this.#socket, this.#handle.bytesRead, this.#handle.bytesWritten + this.#hello.length);
    return this.#hello;
  }

  ending(): void {
    detach(this.#socket);
    say(this.#socket, this.#handle, this.#hello);
  }

  /** What the application has written goes with its socket; the server is still told of the connection. */
  closing(): void {
    say(this.#socket, this.#handle, this.#hello);
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
