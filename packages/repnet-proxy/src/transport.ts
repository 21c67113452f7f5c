/**
 * How each kind of endpoint listens and connects, and what holds for all of them. The only file of
 * the sidecar that knows the library.
 */
import * as net from 'node:net';
import * as repnet from 'repnet';
import type { ConnectEndpoint, ListenEndpoint, Loser, PeerKind } from './endpoint.js';

export interface ReplicationSettings {
  /** bytes */
  readonly threshold: number;
  /** ms */
  readonly copyDelay: number;
  readonly loser: Loser | undefined;
  readonly peer: PeerKind;
  /**
   * Extra bytes and connections as fractions of the others, over all routes; Infinity for no limit.
   */
  readonly budget: { readonly bytes: number; readonly connections: number };
}

/** For the endpoints that do not say otherwise. */
export function configureReplication(settings: ReplicationSettings): void {
  Object.assign(repnet.defaults, settings);
}

/** The kill switch, there and back: whether new connections are replicated from now on. */
export function switchReplication(): boolean {
  if (repnet.isEnabled()) repnet.disable();
  else repnet.enable();
  return repnet.isEnabled();
}

export function isReplicating(): boolean {
  return repnet.isEnabled();
}

/**
 * A server for the endpoint, not yet listening. Half-open connections are kept: the relay carries
 * each end by itself.
 */
export function listener(endpoint: ListenEndpoint, onSocket: (socket: net.Socket) => void): net.Server {
  const options = { allowHalfOpen: true, noDelay: true };
  if (endpoint.kind !== 'repnet') return net.createServer(options, onSocket);
  const { kind, host, port, ...replication } = endpoint;
  return repnet.createServer({ ...options, ...replication }, onSocket);
}

/** A socket that is connecting to the endpoint. */
export function dial(endpoint: ConnectEndpoint): net.Socket {
  const { kind, ...where } = endpoint;
  const options = { ...where, allowHalfOpen: true, noDelay: true };
  if (kind === 'tcp' || kind === 'unix') return net.connect(options as net.NetConnectOpts);
  return repnet.connect({ ...options, replicate: kind });
}
