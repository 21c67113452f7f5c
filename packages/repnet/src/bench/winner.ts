/** Which copy of a replicated connection was faster, exchange by exchange. */
import type { Socket } from 'node:net';
import { attachment } from '../socket-internals.js';
import { Winner } from './wire.js';

/** Follows one connection: the copy that brought most bytes first since the last time it was asked. */
export class WinnerMeter {
  readonly #socket: Socket;
  #before: readonly [number, number] = [0, 0];

  constructor(socket: Socket) {
    this.#socket = socket;
  }

  /** A value of `Winner`, for the bytes received since the last call. */
  read(): number {
    const attached = attachment(this.#socket);
    if (attached === undefined) return Winner.NONE;
    // Not joined by its second connection yet: the first has brought everything.
    const won = attached.flow?.rx.won ?? ([this.#socket.bytesRead, 0] as const);
    const [primary, replica] = [won[0] - this.#before[0], won[1] - this.#before[1]];
    this.#before = [won[0], won[1]];
    return replica > primary ? Winner.REPLICA : Winner.PRIMARY;
  }
}

/** The name of a winner in the CSV. */
export function winnerName(winner: number): string {
  return ['', 'primary', 'replica'][winner] ?? '';
}
