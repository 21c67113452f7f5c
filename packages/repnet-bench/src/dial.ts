/** How the traffic generator connects and listens. The only file of it that knows the library. */
import * as net from 'node:net';
import {
  connect,
  createServer,
  isEnabled,
  type Server,
  type ServerOptions,
  type Stats,
  stats,
  supported,
} from 'repnet';
import { type Endpoint, parseBytes, parseCount, UsageError } from 'repnet-cli/units';
import type { BenchMode, Dialer } from './client.js';
import { HEADER_BYTES } from './wire.js';

export interface DialOptions {
  readonly mode: BenchMode;
  readonly servers: readonly Endpoint[];
  /** Longer flows are not replicated (bytes). */
  readonly threshold: number;
  readonly replicaPort: number | undefined;
  /** ms */
  readonly copyDelay: number;
  readonly peer: 'auto' | 'repnet' | 'plain';
}

export interface BenchDialer extends Dialer {
  /** The library's counters, for the summary; null where plain net was used. */
  stats(): Stats | null;
}

export function createDialer(options: DialOptions): BenchDialer {
  const { mode, servers, threshold, replicaPort, copyDelay, peer } = options;
  return {
    mode,
    replicates: (bytes) => (mode === 'syn' || mode === 'flow') && bytes <= threshold,
    dial: (to, replicated, localPort) => {
      const target = { ...servers[to]!, noDelay: true, localPort };
      if (mode === 'net') return net.connect(target);
      if (!replicated || mode === 'off') return connect({ ...target, replicate: false });
      // The library's threshold counts every byte of a message, so the longest flow needs its
      // header on top.
      return connect({
        ...target,
        replicate: mode,
        replicaPort,
        copyDelay,
        peer,
        threshold: threshold + HEADER_BYTES,
      });
    },
    stats: () => (mode === 'net' ? null : stats()),
  };
}

/** Whether the library, as it is in this process, replicates what it is asked to. */
export function canReplicate(): boolean {
  return supported && isEnabled();
}

/**
 * The longest threshold, in bytes: the library's counts the header, too, and ends where a hello
 * cannot say more.
 */
const MOST_THRESHOLD = 2 ** 32 - 1 - HEADER_BYTES;

/** '100KB' -> 100000 (bytes). */
export function parseThreshold(text: string, where: string): number {
  const bytes = parseBytes(text, where);
  if (bytes <= MOST_THRESHOLD) return bytes;
  throw new UsageError('ERR_QUANTITY', `${where}: '${text}' is more than ${MOST_THRESHOLD} bytes`);
}

/** The second port of servers whose first ones are these. */
export function parseReplicaPort(text: string, where: string, servers: readonly Endpoint[]): number {
  const port = parseCount(text, where, 1, 65535);
  if (servers.some((server) => server.port === port))
    throw new UsageError('ERR_USAGE', `${where}: '${text}' is a server's first port; give another`);
  return port;
}

/** A server that serves every mode, not yet listening. */
export function listenReplicated(options: ServerOptions): Server {
  return createServer(options);
}
