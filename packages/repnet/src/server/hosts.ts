/**
 * What a server knows of the hosts that connect, so that it can judge a connection before it has said anything. Bounded.
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
 * From such a host a FIN or RST on a first connection is held back for a moment if the second has not come yet: it may be
 * the fault of that connection alone.
 */
export function pairsUsually(address: string | undefined): boolean {
  const paired = hosts.get(address ?? '')?.paired ?? 0;
  return paired !== 0 && Date.now() - paired < PAIRED_LATELY;
}

/** True: the host makes connection after connection and pairs none; nothing is kept for a second when the first is closed. */
export function noteUnpaired(address: string | undefined): boolean {
  return ++hostOf(address).unpaired > SURELY_PLAIN;
}
