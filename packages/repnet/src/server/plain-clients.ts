/**
 * A server none of whose clients replicates need not know where its connections come from, nor list them for second ones that do not
 * come. The first flow that is replicated after all goes by its first connection; from then on they are listed again.
 */

/** First connections in a row without a second one. */
const MANY = 64;
/** Milliseconds without a second connection. */
const LONG = 60_000;

export class PlainClients {
  #inARow = 0;
  #seen = Number.NEGATIVE_INFINITY;
  /** When first connections were last passed by. */
  #until = Number.NEGATIVE_INFINITY;

  /** A first connection has come: nothing need be known of it. */
  pass(): boolean {
    return ++this.#inARow > MANY && performance.now() - this.#seen > LONG;
  }

  /** Somebody has come to the second port. True: first connections were passed by until now. */
  second(): boolean {
    const now = performance.now();
    const passed = this.#inARow > MANY && now - this.#seen > LONG;
    if (passed) this.#until = now;
    this.#inARow = 0;
    this.#seen = now;
    return passed;
  }

  /** The first connection of a flow that a client began at most `patience` milliseconds ago may have been passed by. */
  mayHavePassed(patience: number): boolean {
    return performance.now() - this.#until <= patience;
  }
}
