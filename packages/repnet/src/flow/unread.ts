/** A plain connection of which bytes came together with its hello, so that they have been read although nobody asked for them. */
import type { Attachment, Connection, Inner } from '../socket-internals.js';

/** Keeps such a socket, whose server says `pauseOnConnect`, from another process, where those bytes would be missing. */
export class Unread implements Attachment {
  readonly flow = undefined;
  readonly paired = false;
  readonly native = true;
  readonly #socket: Inner;

  constructor(socket: Inner) {
    this.#socket = socket;
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
