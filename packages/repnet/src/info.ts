/** What a program may know of the replication of one of its sockets. */
import type { Socket } from 'node:net';
import { PRIMARY, REPLICA } from './flow/machine.js';
import type { Mode } from './options.js';
import { type Inner, isOurs, isPlain, kAttachment, kRace } from './socket-internals.js';

/** The first connection of a flow, to the port that was dialled, and the second. */
export type CopyName = 'primary' | 'replica';

export interface SocketInfo {
  /**
   * 'flow': both connections of a flow are in use, or the second is still expected (as a server does of every connection for
   * `defaults.waitTimeout`, unless none of its clients replicates). 'syn': two connections race to be established, or raced. false: the connection is a plain one.
   */
  readonly mode: Mode;
  /** RepFlow: both ends know the two connections for one flow. */
  readonly paired: boolean;
  /** Bytes of the peer's that each copy brought first. Those of a connection by itself are the first's. */
  readonly bytesWon: { readonly primary: number; readonly replica: number };
  /**
   * The copy that was faster: with RepFlow the one that brought more bytes first so far, with RepSYN the connection that was
   * established first. undefined: there was no contest, or the outcome is open, or (RepSYN) this is the server, which cannot
   * know.
   */
  readonly winner: CopyName | undefined;
}

/**
 * How `socket` is replicated, now or when it was closed: a snapshot.
 * @returns undefined for what is not a socket of this package.
 */
export function info(socket: Socket): SocketInfo | undefined {
  if (!isOurs(socket)) return undefined;
  const inner = socket as Inner;
  const attached = inner[kAttachment];
  const flow = attached?.flow;
  if (flow !== undefined) {
    const [primary, replica] = [flow.rx.won[PRIMARY], flow.rx.won[REPLICA]];
    const winner = primary === replica ? undefined : primary > replica ? 'primary' : 'replica';
    return { mode: 'flow', paired: attached?.paired === true, bytesWon: { primary, replica }, winner };
  }
  const race = inner[kRace];
  return {
    mode: race !== undefined ? 'syn' : isPlain(inner) ? false : 'flow',
    paired: false,
    bytesWon: { primary: socket.bytesRead, replica: 0 },
    winner: race === PRIMARY ? 'primary' : race === REPLICA ? 'replica' : undefined,
  };
}
