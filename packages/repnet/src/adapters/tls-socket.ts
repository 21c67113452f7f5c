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

/**
 * What `start` makes over `socket`, which answers for its addresses with those of `socket`: Node's tls asks the native handle, and a
 * replicated socket that is still connecting has none. If `start` throws, as it does for a certificate that is none, nobody has
 * `socket`, and it is closed.
 */
export function startOver<S extends Duplex | null | undefined>(socket: Socket, start: () => S): S {
  let secure: S;
  try {
    secure = start();
  } catch (error) {
    socket.destroy();
    throw error;
  }
  if (secure != null)
    for (const name of ADDRESSES)
      Object.defineProperty(secure, name, { configurable: true, enumerable: true, get: () => socket[name] });
  return secure;
}
