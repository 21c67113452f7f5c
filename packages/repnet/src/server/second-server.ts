/** The server of a second port. */
import net from 'node:net';

/**
 * It tells nobody but `listens` that it listens: in a worker of a cluster the primary would be told, too, and take the port for
 * one of the application's.
 */
export class SecondServer extends net.Server {
  readonly #listens: () => void;

  constructor(listens: () => void) {
    super();
    this.#listens = listens;
  }

  // biome-ignore lint/suspicious/noExplicitAny: the signature of EventEmitter
  override emit(event: string | symbol, ...args: any[]): boolean {
    if (event !== 'listening') return (super.emit as (...a: unknown[]) => boolean)(event, ...args);
    this.#listens();
    return true;
  }
}
