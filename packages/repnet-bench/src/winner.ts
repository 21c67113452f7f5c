/** The faster copy of a replicated connection, exchange by exchange. */
import type { Socket } from 'node:net';
import { info } from 'repnet';
import { Winner } from './wire.js';

/**
 * Follows one connection: the copy that brought most bytes first since the last time it was asked.
 */
export class WinnerMeter {
  readonly #socket: Socket;
  #before = { primary: 0, replica: 0 };

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** A value of `Winner`, for the bytes received since the last call. */
  read(): number {
    const now = info(this.#socket);
    if (now?.mode !== 'flow') return Winner.NONE;
    const won = now.bytesWon;
    const [primary, replica] = [won.primary - this.#before.primary, won.replica - this.#before.replica];
    this.#before = won;
    return replica > primary ? Winner.REPLICA : Winner.PRIMARY;
  }
}

/**
 * How a client's flow is carried: by two connections that race byte by byte ('flow'), by the one of
 * two that was established first ('syn'), or by one (false), also where the library was asked for
 * two and knows that the server cannot.
 */
export function carriedBy(socket: Socket): 'flow' | 'syn' | false {
  return info(socket)?.mode ?? false;
}

/** The name of a winner in the CSV. */
export function winnerName(winner: number): string {
  return ['', 'primary', 'replica'][winner] ?? '';
}
