/**
 * Sockets for connections that net has not accepted itself. One is made ahead, while a hello is
 * under way; `announce` informs the application as net does.
 */
import { AsyncResource } from 'node:async_hooks';
import { channel } from 'node:diagnostics_channel';
import type * as net from 'node:net';
import { type Handle, takeHandle } from '../net-internals.js';
import { Socket } from '../socket.js';
import type { Inner } from '../socket-internals.js';
import type { Internals } from './server-internals.js';

export class Sockets {
  readonly #server: Internals;
  /** The async context of `listen`, in which net emits 'connection'. */
  readonly #context = new AsyncResource('REPNETSERVER');
  #socket: Inner | undefined;

  constructor(server: Internals) {
    this.#server = server;
  }

  make(): void {
    this.#socket ??= this.#made();
  }

  /** Returns a socket without a handle. */
  take(): Inner {
    const socket = this.#socket ?? this.#made();
    this.#socket = undefined;
    return socket;
  }

  /** Announces a socket to the application, as net does with a connection that it has accepted. */
  announce(socket: Inner): void {
    this.#context.runInAsyncScope(() => this.#announce(socket));
  }

  #announce(socket: Inner): void {
    const server = this.#server;
    server._connections++;
    Object.assign(socket, { server, _server: server });
    if (server.pauseOnConnect) Object.assign(socket, { readableFlowing: false });
    server.emit('connection', socket);
    const accepted = channel('net.server.socket');
    if (accepted.hasSubscribers) accepted.publish({ socket });
    if (!server.pauseOnConnect && !socket.destroyed) socket.read(0);
  }

  /** Returns the handle of a socket of which the application never hears. */
  withdraw(socket: Inner): Handle {
    this.#server._connections--;
    Object.assign(socket, { _server: null, server: null });
    return takeHandle(socket);
  }

  #made(): Inner {
    const server = this.#server;
    return new Socket({
      allowHalfOpen: server.allowHalfOpen,
      readableHighWaterMark: server.highWaterMark,
      writableHighWaterMark: server.highWaterMark,
      // For the handle that the socket will be given.
      noDelay: server.noDelay,
      keepAlive: server.keepAlive,
      keepAliveInitialDelay: server.keepAliveInitialDelay * 1000,
    } as net.SocketConstructorOpts) as Inner;
  }
}
