/** The target of a socket's `connect`, and the replication to use. */
import type * as net from 'node:net';
import { begun } from './info.js';
import { nativeHandle } from './net-internals.js';
import { supported } from './net-parts.js';
import { chooseMode, type ReplicationOptions, replicationOptions } from './options.js';
import { type DialTarget, type Inner, kAttachment, kOptions } from './socket-internals.js';
import { counters } from './stats.js';

/** Returns the target of `connect(...args)`; undefined if `net` connects by itself. */
export function chooseTarget(socket: Inner, args: unknown[]): DialTarget | undefined {
  let options = args[0];
  // Normalised by net's own callers: [options, callback].
  if (Array.isArray(options)) options = options[0];
  if (typeof options !== 'object' || options === null) {
    const port = typeof options === 'string' ? Number(options || Number.NaN) : options;
    if (typeof port !== 'number' || Number.isNaN(port)) return undefined;
    options = typeof args[1] === 'string' ? { port, host: args[1] } : { port };
  }
  const net = options as net.TcpNetConnectOpts & ReplicationOptions & { path?: string; fd?: number };
  if (net.path != null || socket[kAttachment] !== undefined) return undefined;
  if (supported && nativeHandle(socket) !== null) return undefined;
  const port = typeof net.port === 'string' ? Number((net.port as string) || Number.NaN) : net.port;
  if (!Number.isInteger(port) || port <= 0 || port > 65535) return undefined;
  const own = socket[kOptions];
  const mode = chooseMode(net, own, {
    host: net.host || 'localhost',
    port,
    localPort: net.localPort ?? 0,
  });
  const replication = mode === false ? undefined : replicationOptions(net, own, port);
  if (mode === false || replication === undefined || !supported) {
    counters.flowsPlain++;
    if (supported) begun(socket, 'plain');
    return undefined;
  }
  if (replication.replicaPort > 65535) return undefined;
  // For net neither 0 nor null is a port.
  const ownPort = net.localPort || undefined;
  // net reads these two in its constructor alone, and all others in `connect` alone.
  const { onread } = (own ?? {}) as { onread?: object };
  const { blockList } = socket as { blockList?: net.BlockList };
  const where = { host: net.host || 'localhost', port, localPort: ownPort, blockList };
  // Only a native handle reads into the application's own buffer: one connection, chosen by its
  // handshake.
  return { mode: onread == null ? mode : 'syn', net: { ...net, ...where }, replication };
}
