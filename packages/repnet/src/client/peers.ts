/**
 * Servers as the client has come to know them: whether replication is understood at an address and
 * port. Entries are bounded in number, and expire, since services move.
 */
import { TidyMap } from '../memory/tidy-map.js';

export interface Peer {
  /**
   * unsure: hellos went unanswered, but too few to decide. other: a hello was answered for another
   * first port than was dialled: the port is another service's, or ports are translated on the way,
   * and only plain connections are safe.
   */
  kind: 'repnet' | 'plain' | 'silent' | 'unsure' | 'other';
  /** Answer flags of a repnet peer, and TRANSLATED. */
  flags: number;
  threshold: number;
  until: number;
  /**
   * Lives ('address|life') that servers at the addresses of the host have reported beside a flow
   * that they had accepted, the latest last.
   */
  readonly lives: string[];
  /** Second connections in a row that failed without an answer. */
  strikes: number;
  /**
   * Questions that count as refused, each beside a flow that had just been accepted; and the time
   * of the last.
   */
  refusals: number;
  refused: number;
}

/**
 * Failures in a row after which the server is no longer taken for one of this library: one may be
 * bad luck.
 */
const STRIKES = 3;

const LIFETIME = { repnet: 600_000, plain: 30_000, silent: 10_000, unsure: 30_000, other: 30_000 };

/**
 * How often, and how long after the time before (ms), a server has to accept a flow and refuse the
 * question beside it until two connections to its first port are safe. A server of this library
 * that starts or closes does it, too, for a moment.
 */
const REFUSALS = 2;
const APART = 1_000;
/**
 * Milliseconds between RepSYN's questions beside its flows: a server of this library may replace
 * the server.
 */
const ASK_AGAIN = 5_000;

/**
 * The server has joined a flow of ours, so that it is the right one, but has another number for its
 * first port.
 */
export const TRANSLATED = 0x100;
const MOST = 8_192;

const peers = new TidyMap<string, Peer>();

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

/** The most lives remembered of a host: each process that shares a port has one. */
const MOST_LIVES = 32;

export function lifeKey(address: string, life: Buffer): string {
  return `${address}|${life.toString('hex')}`;
}

/** The server at `address`, which has accepted a flow's first connection, has reported its life. */
export function noteLife(key: string, address: string, life: Buffer): void {
  const lives = recallPeer(key)?.lives;
  const told = lifeKey(address, life);
  if (lives === undefined || lives.includes(told)) return;
  lives.push(told);
  if (lives.length > MOST_LIVES) lives.shift();
}

export function rememberPeer(key: string, kind: Peer['kind'], flags = 0, threshold = 0): void {
  const known = peers.get(key);
  // An answer makes a known entry last longer. The order counts only when there is no room.
  if (kind === 'repnet' && known?.kind === kind && peers.size < MOST) {
    known.flags = flags;
    known.threshold = threshold;
    known.until = Date.now() + LIFETIME[kind];
    known.strikes = 0;
    return;
  }
  remember(key, peerOf(kind, flags, threshold, Date.now() + LIFETIME[kind]));
}

function remember(key: string, peer: Peer): void {
  peers.delete(key);
  if (peers.size >= MOST) peers.delete(peers.oldest as string);
  peers.set(key, peer);
}

function peerOf(kind: Peer['kind'], flags: number, threshold: number, until: number): Peer {
  return { kind, flags, threshold, until, lives: [], strikes: 0, refusals: 0, refused: 0 };
}

/** Returns a peer of the kind that the application names; it never expires. */
export function toldPeer(kind: 'repnet' | 'plain', threshold = 0): Peer {
  return { ...peerOf(kind, 0, threshold, 0), refusals: REFUSALS, refused: Number.POSITIVE_INFINITY };
}

/**
 * The second port was refused, or another service's, when it was asked at `asked`, beside a flow
 * that had been accepted.
 */
export function noteRefusal(key: string, asked: number): void {
  const before = recallPeer(key);
  const { refusals, refused } = before?.kind === 'plain' ? before : { refusals: 0, refused: 0 };
  const counts = asked - refused >= APART;
  remember(key, {
    ...peerOf('plain', 0, 0, Date.now() + LIFETIME.plain),
    refusals: counts ? refusals + 1 : refusals,
    refused: counts ? Date.now() : refused,
  });
}

/**
 * Returns whether two connections to the first port of a server that is taken for a plain one are
 * safe.
 */
export const mayRace = (peer: Peer): boolean => peer.refusals >= REFUSALS;

/** Returns whether the server is due to be asked once more. */
export const isDue = (peer: Peer): boolean =>
  Date.now() - peer.refused >= (mayRace(peer) ? ASK_AGAIN : APART);

/**
 * Returns whether the server, for which the application does not vouch, is to be asked for its
 * life; not with every flow.
 */
export function mayLearnLife(peer: Peer): boolean {
  if (peer.until === 0 || peer.lives.length > 0 || Date.now() - peer.refused < APART) return false;
  peer.refused = Date.now();
  return true;
}

/** Forgets the lives of a server: another one answered. */
export function forgetLife(key: string): void {
  const peer = recallPeer(key);
  if (peer !== undefined) peer.lives.length = 0;
}

/**
 * A second connection failed without an answer. Returns whether the server is now taken for one
 * that does not replicate.
 */
export function strikePeer(key: string): boolean {
  const peer = peers.get(key);
  if (peer === undefined) {
    remember(key, { ...peerOf('unsure', 0, 0, Date.now() + LIFETIME.unsure), strikes: 1 });
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
