/** Tells those who subscribed of the beginning and the end of each flow, however it is carried. */
import { REPLICA } from './flow/machine.js';
import { info } from './info.js';
import { nativeHandle } from './net-internals.js';
import { type Inner, kAttachment, kBegun, kRace } from './socket-internals.js';
import { channels } from './stats.js';

/** A client's flow begins. */
export function begun(socket: Inner, mode: 'flow' | 'syn' | 'plain'): void {
  socket[kBegun] = true;
  if (channels.flow.hasSubscribers) channels.flow.publish({ socket, mode });
}

/** Whether the end of what `socket` is destroyed with is that of a flow: one that a client began, or a server accepted by TCP. */
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
