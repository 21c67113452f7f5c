/**
 * An IP address. Second connections and questions go to an address that the flow's own connection goes to, never to a name or to
 * nothing: for net a missing host is localhost, which would be another machine's.
 */
import net from 'node:net';

declare const kAddress: unique symbol;
export type Address = string & { readonly [kAddress]: true };

/** Undefined if it is none; so is the remote address of a socket that has been destroyed or reset. */
export function asAddress(host: unknown): Address | undefined {
  return typeof host === 'string' && net.isIP(host) !== 0 ? (host as Address) : undefined;
}
