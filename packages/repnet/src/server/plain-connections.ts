/**
 * Connections that net has not accepted and that carry a plain stream: the winner of a RepSYN race, or a plain client's of a server that
 * pairs by token.
 */
import { systemError } from '../errors.js';
import { Leg, nobody } from '../flow/leg.js';
import { PRIMARY } from '../flow/machine.js';
import { applySettings, giveHandle, isBroken, takeHandle, tellOwnPort } from '../net-internals.js';
import { defaults } from '../options.js';
import { attach, attachment, type Inner, setRace, setSkew } from '../socket-internals.js';
import { counters } from '../stats.js';
import { type Hello, HelloFlag, Kind } from '../wire.js';
import type { Answers } from './answers.js';
import { noteHello } from './hosts.js';
import { LateHello } from './late-hello.js';
import type { Limits } from './limits.js';
import type { Had } from './pairing.js';
import type { Internals } from './server-internals.js';
import type { Sockets } from './sockets.js';
import { Unread } from './unread.js';

export interface PlainParts {
  owner: Internals;
  /** The first port, once there is one. */
  port: () => number;
  limits: Limits;
  sockets: Sockets;
  answers: Answers;
  /** Pairing by token: a connection that the application has already says its hello after all. */
  late: (leg: Leg, hello: Hello, rest: Buffer | undefined, had: Had) => void;
}

export class PlainConnections {
  readonly #parts: PlainParts;

  constructor(parts: PlainParts) {
    this.#parts = parts;
  }

  /** The application gets the connection, with what it has brought already; `skew` bytes before that were a hello. */
  accept(leg: Leg, rest: Buffer | undefined, skew: number): void {
    if (leg.lost) return;
    const { owner, port, limits, sockets, answers } = this.#parts;
    if (limits.full(leg)) {
      // Its client expects the application's bytes and nothing else.
      answers.count(leg, 'limit');
      leg.close();
      return;
    }
    const handle = leg.release();
    // Nothing but the hello has come, and libuv shows what follows bytes as an end, also where it is a reset. Nothing has been sent
    // that it could have failed of.
    const wasReset = skew > 0 && rest === undefined && isBroken(handle);
    if (owner.pauseOnConnect && (rest !== undefined || skew > 0)) {
      handle.reading = false;
      handle.readStop();
    }
    const socket = sockets.take();
    tellOwnPort(handle, port());
    giveHandle(handle, socket);
    applySettings(socket, handle);
    // A connection that has proved the server has had two hellos and an answer.
    if (skew === 0) setSkew(socket, 0, 0);
    else setSkew(socket, handle.bytesRead - (rest?.length ?? 0), handle.bytesWritten);
    if (skew > 0) setRace(socket, 'open');
    socket.ref();
    if (owner.pauseOnConnect) Object.assign(socket, { readableFlowing: false });
    counters.flowsAccepted++;
    if (rest !== undefined) {
      if (owner.pauseOnConnect) attach(socket, new Unread(socket, rest.length));
      socket.push(rest);
    } else if (skew === 0)
      new LateHello(
        socket,
        defaults.waitTimeout,
        (hello, more) => this.#greeted(socket, hello, more),
        () => this.#drop(socket),
      );
    sockets.announce(socket);
    if (!wasReset) return;
    // One that is read in a later turn of the event loop shows it by itself.
    process.nextTick(() => {
      if (!owner.pauseOnConnect || socket.readableFlowing !== false)
        socket.destroy(systemError('ECONNRESET', 'read'));
    });
  }

  /** The application has the connection already, and takes it for a plain client's. */
  #greeted(socket: Inner, hello: Hello, rest: Buffer | undefined): void {
    noteHello(socket.remoteAddress);
    const joins = hello.kind === Kind.primary && (hello.flags & HelloFlag.token) !== 0;
    // What the application has said to it would be taken for our answer.
    if (!joins || socket.bytesWritten > 0 || socket.writableEnded) return this.#drop(socket);
    const handle = takeHandle(socket);
    const reads = handle.reading === true;
    setSkew(socket, 0, 0);
    const leg = new Leg(PRIMARY, nobody, handle, true).unref();
    this.#parts.late(leg, hello, rest, { socket, reads });
    // Its flow began with the second connection, or does not begin here.
    if (attachment(socket) === undefined) socket.destroy();
  }

  #drop(socket: Inner): void {
    this.#parts.answers.count(socket, 'hello');
    socket.resetAndDestroy();
  }
}
