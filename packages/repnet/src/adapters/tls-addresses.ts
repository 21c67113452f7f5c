/** Addresses of a TLS socket over a repnet one. */
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
 * Let `secure` answer for its addresses with those of `socket`. Node's tls asks the native handle, and a replicated socket
 * that is still connecting has none.
 */
export function shareAddresses<S extends Duplex>(secure: S, socket: Socket): S {
  for (const name of ADDRESSES) {
    Object.defineProperty(secure, name, { configurable: true, enumerable: true, get: () => socket[name] });
  }
  return secure;
}
