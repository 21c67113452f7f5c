/** Connections to the second port that carry a plain stream: the winners of RepSYN's races. */
import { systemError } from '../errors.js';
import type { Leg } from '../flow/leg.js';
import { applySettings, giveHandle, isBroken, tellOwnPort } from '../net-internals.js';
import { attach, Flowless, type Inner, setRace, setSkew } from '../socket-internals.js';
import { counters } from '../stats.js';
import type { Answers } from './answers.js';
import type { Limits } from './limits.js';
import type { Internals } from './server-internals.js';
import type { Sockets } from './sockets.js';

export interface PlainParts {
  owner: Internals;
  /** The first port, once there is one. */
  port: () => number;
  limits: Limits;
  sockets: Sockets;
  answers: Answers;
}

export class PlainConnections {
  readonly #parts: PlainParts;

  constructor(parts: PlainParts) {
    this.#parts = parts;
  }

  /**
   * Gives the application a connection that has said its hello, and `rest`, which came with that.
   */
  accept(leg: Leg, rest: Buffer | undefined): void {
    if (leg.lost) return;
    const { owner, port, limits, sockets, answers } = this.#parts;
    if (limits.full(leg)) {
      // The client expects the application's bytes and nothing else.
      answers.count(leg, 'limit');
      leg.close();
      return;
    }
    const handle = leg.release();
    // If only the hello has come, a reset may have followed it, which libuv shows as an end.
    // Nothing has been sent that could have failed.
    const wasReset = rest === undefined && isBroken(handle);
    if (owner.pauseOnConnect) {
      handle.reading = false;
      handle.readStop();
    }
    const socket = sockets.take();
    tellOwnPort(handle, port());
    giveHandle(handle, socket);
    applySettings(socket, handle);
    // A connection that has proved the server has had two hellos and an answer.
    setSkew(socket, handle.bytesRead - (rest?.length ?? 0), handle.bytesWritten);
    setRace(socket, 'open');
    socket.ref();
    if (owner.pauseOnConnect) Object.assign(socket, { readableFlowing: false });
    counters.flowsAccepted++;
    if (rest !== undefined) {
      if (owner.pauseOnConnect) attach(socket, new Unread(socket, rest.length));
      socket.push(rest);
    }
    sockets.announce(socket);
    if (!wasReset) return;
    // A reset that is read in a later turn of the event loop shows by itself.
    process.nextTick(() => {
      if (!owner.pauseOnConnect || socket.readableFlowing !== false)
        socket.destroy(systemError('ECONNRESET', 'read'));
    });
  }
}

/**
 * Attached to a plain socket whose hello came together with bytes of the application's, on a server
 * with `pauseOnConnect`: another process must not get the socket, where those bytes would be
 * missing.
 */
export class Unread extends Flowless {
  readonly native = true;
  readonly #socket: Inner;

  #bytes: number;

  constructor(socket: Inner, bytes: number) {
    super();
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
}
