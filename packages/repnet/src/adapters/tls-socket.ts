/** A TLS socket over a repnet one. */
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';

const ADDRESSES = [
  'remoteAddress',
  'remotePort',
  'remoteFamily',
  'localAddress',
  'localPort',
  'localFamily',
] as const;

/** What a TLS socket that connects by itself emits, and one over another socket does not. */
const EVENTS = [
  'lookup',
  'connectionAttempt',
  'connectionAttemptFailed',
  'connectionAttemptTimeout',
  'ready',
] as const;

/**
 * Returns what `start` makes over `socket`, as if it had connected by itself: with the addresses of `socket`, its events, and its error as
 * the reason to close. If `start` throws, as it does for a certificate that is none, nobody has `socket`, and it is closed.
 */
export function startOver<S extends Duplex | null | undefined>(socket: Socket, start: () => S): S {
  let secure: S;
  try {
    secure = start();
  } catch (error) {
    socket.destroy();
    throw error;
  }
  if (secure == null) return secure;
  // Node's tls asks the native handle, and a replicated socket that is still connecting has none.
  for (const name of ADDRESSES)
    Object.defineProperty(secure, name, { configurable: true, enumerable: true, get: () => socket[name] });
  for (const event of EVENTS)
    socket.on(event, (...args: unknown[]) => {
      if (!secure.destroyed) secure.emit(event, ...args);
    });
  // tls emits the error of `socket`, and forgets it when it closes.
  socket.once('error', () => {
    const { emit } = secure;
    secure.emit = (event: string, ...args: unknown[]) =>
      emit.call(secure, event, ...(event === 'close' ? [true] : args));
  });
  return secure;
}
