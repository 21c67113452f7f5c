/**
 * A connection that was silent for so long that the application has it, as a plain client's, on a server that pairs by token.
 * Its first bytes decide: a hello after all is none of the application's. Attached to the socket until then, so that nothing
 * reads the native handle past it.
 */
import { ownCopy } from '../memory/own-copy.js';
import { type Attachment, attach, type Connection, detach, type Inner } from '../socket-internals.js';
import { decodeHello, HELLO_BYTES, type Hello, looksLikeHello } from '../wire.js';

export class LateHello implements Attachment {
  readonly flow = undefined;
  readonly paired = false;
  readonly native = true;
  readonly #socket: Inner;
  readonly #timeout: number;
  readonly #came: (hello: Hello, rest: Buffer | undefined) => void;
  readonly #broken: () => void;
  #bytes: Buffer | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** `came` has to take the connection over; `broken`: to end it. `timeout`: milliseconds from a hello's first byte on. */
  constructor(
    socket: Inner,
    timeout: number,
    came: (hello: Hello, rest: Buffer | undefined) => void,
    broken: () => void,
  ) {
    this.#socket = socket;
    this.#timeout = timeout;
    this.#came = came;
    this.#broken = broken;
    attach(socket, this);
    Object.defineProperty(socket, 'push', {
      value: (chunk: Buffer | null, encoding?: BufferEncoding) => this.#push(chunk, encoding),
      configurable: true,
      writable: true,
    });
  }

  #push(chunk: Buffer | null, encoding: BufferEncoding | undefined): boolean {
    if (chunk === null) {
      if (this.#bytes === undefined) return this.#plain(null, encoding);
      this.#over();
      this.#broken();
      return true;
    }
    const bytes = this.#bytes === undefined ? chunk : Buffer.concat([this.#bytes, chunk]);
    if (!looksLikeHello(bytes)) return this.#plain(bytes, encoding);
    if (bytes.length < HELLO_BYTES) {
      this.#bytes = ownCopy(bytes);
      this.#timer ??= setTimeout(() => this.#broken(), this.#timeout).unref();
      return true;
    }
    this.#over();
    const hello = decodeHello(bytes);
    if (hello === undefined) this.#broken();
    else this.#came(hello, bytes.length > HELLO_BYTES ? bytes.subarray(HELLO_BYTES) : undefined);
    // What is read on is not the socket's to stop.
    return true;
  }

  #plain(chunk: Buffer | null, encoding: BufferEncoding | undefined): boolean {
    this.#over();
    return this.#socket.push(chunk, encoding);
  }

  /** The socket is as any other from now on. */
  #over(): void {
    clearTimeout(this.#timer);
    delete (this.#socket as { push?: unknown }).push;
    detach(this.#socket);
  }

  /** Never: a hello that is still under way would reach the application there. */
  handOver(): boolean {
    return false;
  }

  closed(): void {
    clearTimeout(this.#timer);
  }
  *connections(): Iterable<Connection> {}
  peername(): object {
    return {};
  }
  sockname(): object {
    return {};
  }
}
