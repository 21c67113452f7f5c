/** A plain connection of which bytes came together with its hello, so that they have been read although nobody asked for them. */
import type { Attachment, Connection, Inner } from '../socket-internals.js';

/** Keeps such a socket, whose server says `pauseOnConnect`, from another process, where those bytes would be missing. */
export class Unread implements Attachment {
  readonly flow = undefined;
  readonly paired = false;
  readonly native = true;
  readonly #socket: Inner;

  #bytes: number;

  constructor(socket: Inner, bytes: number) {
    this.#socket = socket;
    this.#bytes = bytes;
  }

  /** Bytes that net would not have read yet. */
  get unread(): number {
    const { readableLength, readableFlowing } = this.#socket;
    if (readableFlowing || readableLength < this.#bytes) this.#bytes = 0;
    return this.#bytes;
  }

  handOver(): boolean {
    return this.#socket.readableLength === 0;
  }

  closed(): void {}

  connections(): Iterable<Connection> {
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
