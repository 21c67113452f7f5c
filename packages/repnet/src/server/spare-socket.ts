/** Sockets for flows that begin with a connection to the second port, one made ahead: while a hello is under way there is time. */
import type net from 'node:net';
import { Socket } from '../socket.js';
import type { Inner } from '../socket-internals.js';
import type { Internals } from './server-internals.js';

export class SpareSocket {
  readonly #server: Internals;
  #socket: Inner | undefined;

  constructor(server: Internals) {
    this.#server = server;
  }

  make(): void {
    this.#socket ??= this.#made();
  }

  /** Without a handle. */
  take(): Inner {
    const socket = this.#socket ?? this.#made();
    this.#socket = undefined;
    return socket;
  }

  #made(): Inner {
    const server = this.#server;
    return new Socket({
      allowHalfOpen: server.allowHalfOpen,
      readableHighWaterMark: server.highWaterMark,
      writableHighWaterMark: server.highWaterMark,
      // For the handle that it is given.
      noDelay: server.noDelay,
      keepAlive: server.keepAlive,
      keepAliveInitialDelay: server.keepAliveInitialDelay * 1000,
    } as net.SocketConstructorOpts) as Inner;
  }
}
