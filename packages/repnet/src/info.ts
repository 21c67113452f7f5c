/**
 * Reports on the replication of a program's sockets: `info`, and the channels of a flow's beginning
 * and end.
 */
import type { Socket } from 'node:net';
import { PRIMARY, REPLICA } from './flow/machine.js';
import { nativeHandle } from './net-internals.js';
import type { Mode } from './options.js';
import { type Inner, isOurs, isPlain, kAttachment, kBegun, kRace } from './socket-internals.js';
import { channels } from './stats.js';

/** The first connection of a flow, to the port that was dialled, and the second. */
export type CopyName = 'primary' | 'replica';

export interface SocketInfo {
  /**
   * 'flow': both connections of a flow are in use, or the second is still expected (as a server
   * does for `defaults.waitTimeout`, unless none of its clients replicates). 'syn': two connections
   * race to be established, or raced. false: the connection is a plain one.
   */
  readonly mode: Mode;
  /** RepFlow: both ends have joined the two connections. */
  readonly paired: boolean;
  /**
   * Bytes of the peer's that each copy brought first. The bytes of a single connection are the
   * first copy's.
   */
  readonly bytesWon: { readonly primary: number; readonly replica: number };
  /**
   * The faster copy: with RepFlow the one that brought more bytes first so far, with RepSYN the
   * connection that was established first. undefined: there was no contest, the outcome is open, or
   * (RepSYN) this is the server, which cannot know.
   */
  readonly winner: CopyName | undefined;
}

/**
 * Returns how `socket` is replicated, now or when it was closed.
 * @returns undefined for an object that is no socket of this package.
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

/** A client's flow begins. */
export function begun(socket: Inner, mode: 'flow' | 'syn' | 'plain'): void {
  socket[kBegun] = true;
  if (channels.flow.hasSubscribers) channels.flow.publish({ socket, mode });
}

/**
 * Returns whether the destroyed socket had a flow: one that a client began, or a server accepted by
 * TCP.
 */
export function isFlow(socket: Inner): boolean {
  if (socket[kBegun]) return true;
  return socket._server != null && nativeHandle(socket)?.constructor.name !== 'Pipe';
}

/** The application's socket is closed. */
export function finished(socket: Inner): void {
  const flow = socket[kAttachment]?.flow;
  const race = socket[kRace];
  const { primary, replica } = (info(socket) as NonNullable<ReturnType<typeof info>>).bytesWon;
  // The winner of a race has one connection, which brought everything.
  const [wonByPrimary, wonByReplica] = race === REPLICA ? [replica, primary] : [primary, replica];
  channels.finished.publish({
    socket,
    mode: flow !== undefined ? 'flow' : race !== undefined ? 'syn' : 'plain',
    bytesRead: socket.bytesRead,
    bytesWritten: flow === undefined ? socket.bytesWritten : flow.tx.offset,
    wonByPrimary,
    wonByReplica,
  });
}
