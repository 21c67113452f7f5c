/** An attempt to connect. What comes of it is a native handle: who reads and writes it is decided later. */
import type * as net from 'node:net';
import type { Copy } from '../flow/machine.js';
import type { Handle } from '../net-internals.js';
import type { Connection } from '../socket-internals.js';
import { isEphemeral } from './ports.js';

export interface AttemptSink {
  /** The connection is established. */
  attemptOpen(attempt: Attempt, handle: Handle): void;
  /** It is not; never after `abandon`. */
  attemptFailed(attempt: Attempt, error: NodeJS.ErrnoException | undefined): void;
  /** What net tells on the way ('lookup', 'connectionAttempt' …). */
  attemptEvent(attempt: Attempt, event: string, args: unknown[]): void;
}

/**
 * Returns whether the system has chosen the port that is connected to for the connection's own: on this host it is
 * one to itself then, since nobody listens there. `port`: the one that is connected to.
 */
export function isToItself(handle: Handle, port: number): boolean {
  if (!isEphemeral(port)) return false;
  const own: { address?: string; port?: number } = {};
  const peer: typeof own = {};
  handle.getsockname(own);
  if (own.port === undefined || handle.getpeername(peer) !== 0) return false;
  return own.port === peer.port && own.address === peer.address;
}

export type AttemptOptions = net.TcpNetConnectOpts & net.SocketConstructorOpts;

export interface Attempt extends Connection {
  readonly copy: Copy;
  /** The addresses tried, where a name has several. */
  readonly autoSelectFamilyAttemptedAddresses?: string[];
  /** From where, as far as it is known. */
  readonly local: { address?: string | undefined; family?: string | undefined; port?: number | undefined };
  /** The system has established the connection, which is not told yet. */
  readonly isEstablished: boolean;
  /** To where, if that is known without asking the system. */
  readonly remote: net.AddressInfo | undefined;
  /** Begins: in the next tick, as net does for an address, or `atOnce`. Throws what net throws for invalid options. */
  start(atOnce?: boolean): void;
  /** Tells `sink` what comes of it from now on. */
  passTo(sink: AttemptSink): void;
  /** Gives it up. `reset`: by RST, if the kernel has established what Node still takes for connecting. */
  abandon(reset: boolean): void;
}
