/**
 * What the client has learnt of servers: whether replication is understood at an address and port. Bounded and forgotten
 * after a time, since services move.
 */
export interface Peer {
  /**
   * unsure: hellos went unanswered, too few to tell. other: a hello was answered for another first port than was dialled; it
   * is another service's, or ports are translated on the way, and nothing but plain connections is safe.
   */
  kind: 'repnet' | 'plain' | 'silent' | 'unsure' | 'other';
  /** Answer flags of a repnet peer, and TRANSLATED. */
  flags: number;
  threshold: number;
  until: number;
  /** Replicas in a row that failed without an answer. */
  strikes: number;
}

/** One replica may fail by bad luck; so many in a row mean that replication is no longer understood there. */
const STRIKES = 3;

const LIFETIME = { repnet: 600_000, plain: 30_000, silent: 10_000, unsure: 30_000, other: 30_000 };

/** The server has joined a flow of ours, so that it is the right one, but knows its first port by another number. */
export const TRANSLATED = 0x100;
const MOST = 8_192;

const peers = new Map<string, Peer>();

export function peerKey(address: string, port: number, replicaPort: number): string {
  return `${address}|${port}|${replicaPort}`;
}

export function recallPeer(key: string): Peer | undefined {
  const peer = peers.get(key);
  if (peer === undefined) return undefined;
  if (peer.until > Date.now()) return peer;
  peers.delete(key);
  return undefined;
}

export function rememberPeer(key: string, kind: Peer['kind'], flags = 0, threshold = 0): void {
  peers.delete(key);
  if (peers.size >= MOST) peers.delete(peers.keys().next().value as string);
  peers.set(key, { kind, flags, threshold, until: Date.now() + LIFETIME[kind], strikes: 0 });
}

/** A replica to the peer failed without an answer. True: the peer is now taken for one that does not replicate. */
export function strikePeer(key: string): boolean {
  const peer = peers.get(key);
  if (peer === undefined) {
    peers.set(key, {
      kind: 'unsure',
      flags: 0,
      threshold: 0,
      until: Date.now() + LIFETIME.unsure,
      strikes: 1,
    });
    return false;
  }
  if (++peer.strikes < STRIKES) return false;
  if (peer.kind === 'repnet') peers.delete(key);
  else rememberPeer(key, 'plain');
  return true;
}

export function forgetPeer(key: string): void {
  peers.delete(key);
}

/** Forgets every server, so that the next flow discovers it again. */
export function forgetPeers(): void {
  peers.clear();
}
