/** Which copy of a replicated connection was faster, exchange by exchange. */
import type { Socket } from 'node:net';
import { info } from 'repnet';
import { Winner } from './wire.js';

/** Follows one connection: the copy that brought most bytes first since the last time it was asked. */
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

/** The name of a winner in the CSV. */
export function winnerName(winner: number): string {
  return ['', 'primary', 'replica'][winner] ?? '';
}
