/**
 * What the client has learnt of servers: whether replication is understood at an address and port. Bounded and forgotten
 * after a time, since services move.
 */
export interface Peer {
  kind: 'repnet' | 'plain' | 'silent';
  /** Answer flags of a repnet peer. */
  flags: number;
  threshold: number;
  until: number;
}

const LIFETIME = { repnet: 600_000, plain: 30_000, silent: 10_000 };
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
  peers.set(key, { kind, flags, threshold, until: Date.now() + LIFETIME[kind] });
}

export function forgetPeer(key: string): void {
  peers.delete(key);
}

/** Forgets every server, so that the next flow discovers it again. */
export function forgetPeers(): void {
  peers.clear();
}
