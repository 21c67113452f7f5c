/**
 * Hosts that connect, as a server knows them, so that it can judge a connection before that says
 * anything. Bounded in number.
 */
import { TidyMap } from '../memory/tidy-map.js';

interface Host {
  /** When a flow was paired last; 0: never. */
  paired: number;
  /** Connections since then that were closed unpaired. */
  unpaired: number;
}

const hosts = new TidyMap<string, Host>();
const MOST_HOSTS = 4_096;
const PAIRED_LATELY = 60_000;
const SURELY_PLAIN = 64;

function hostOf(address: string | undefined): Host {
  const known = hosts.get(address ?? '');
  if (known !== undefined) return known;
  const host = { paired: 0, unpaired: 0 };
  if (hosts.size >= MOST_HOSTS) hosts.delete(hosts.oldest as string);
  hosts.set(address ?? '', host);
  return host;
}

export function notePairing(address: string | undefined): void {
  const host = hostOf(address);
  host.paired = Date.now();
  host.unpaired = 0;
}

/**
 * Returns whether flows of the host were paired lately. A FIN or RST on its first connection is
 * then held back for a moment if the second has not come: it may be the fault of that connection
 * alone.
 */
export function pairsUsually(address: string | undefined): boolean {
  const paired = hosts.get(address ?? '')?.paired ?? 0;
  return paired !== 0 && Date.now() - paired < PAIRED_LATELY;
}

/**
 * Counts a connection that was closed unpaired. Returns true after many in a row: nothing is kept
 * for a second connection any more.
 */
export function noteUnpaired(address: string | undefined): boolean {
  return ++hostOf(address).unpaired > SURELY_PLAIN;
}

/** First connections in a row without a second one. */
const MANY = 64;
/** Milliseconds without a second connection. */
const LONG = 60_000;

/**
 * Finds out whether any client replicates. If none does, the server need not know where connections
 * come from, nor list them for second ones. The first flow that is replicated after all goes by its
 * first connection; from then on connections are listed again.
 */
export class PlainClients {
  #inARow = 0;
  #seen = Number.NEGATIVE_INFINITY;
  /** When first connections were last passed by. */
  #until = Number.NEGATIVE_INFINITY;

  /** Counts a first connection. Returns whether it need not be listed. */
  pass(): boolean {
    return ++this.#inARow > MANY && performance.now() - this.#seen > LONG;
  }

  /**
   * Counts a connection to the second port. Returns whether first connections were passed by until
   * now.
   */
  second(): boolean {
    const now = performance.now();
    const passed = this.#inARow > MANY && now - this.#seen > LONG;
    if (passed) this.#until = now;
    this.#inARow = 0;
    this.#seen = now;
    return passed;
  }

  /**
   * Returns whether the first connection of a flow that began at most `patience` milliseconds ago
   * may have been passed by.
   */
  mayHavePassed(patience: number): boolean {
    return performance.now() - this.#until <= patience;
  }
}
