/** Writes a flow's payload to a socket at the speed the socket takes it. */
import type { Socket } from 'node:net';
import { payloadSlice } from './payload.js';

/**
 * Write `header`, then `bytes` of the payload of flow `key`; `done` runs once the last write was
 * accepted.
 */
export function pumpPayload(
  socket: Socket,
  key: number,
  bytes: number,
  header: Buffer,
  done: () => void,
): void {
  let offset = 0;
  const finish = (): void => {
    socket.off('drain', pump);
    done();
  };
  const pump = (): void => {
    while (offset < bytes) {
      if (socket.destroyed) return;
      const slice = payloadSlice(key, offset, bytes);
      offset += slice.length;
      if (!socket.write(slice) && offset < bytes) return; // resumes on 'drain'
    }
    finish();
  };
  const first = payloadSlice(key, 0, Math.min(bytes, 65_536 - header.length));
  offset = first.length;
  // Header and first bytes in one write: a short flow is one segment train, as an application would
  // send it.
  const open = socket.write(Buffer.concat([header, first]));
  if (offset >= bytes) {
    done();
    return;
  }
  socket.on('drain', pump);
  if (open) pump();
}
