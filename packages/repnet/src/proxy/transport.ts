/** How each kind of endpoint listens and connects. The only file of the sidecar that knows the library. */
import * as net from 'node:net';
import * as repnet from '../index.js';
import type { ConnectEndpoint, ListenEndpoint } from './endpoint.js';

/** A server for the endpoint, not yet listening. Half-open connections are kept: the relay carries each end by itself. */
export function listener(endpoint: ListenEndpoint, onSocket: (socket: net.Socket) => void): net.Server {
  const options = { allowHalfOpen: true, noDelay: true };
  if (endpoint.kind !== 'repnet') return net.createServer(options, onSocket);
  return repnet.createServer(
    { ...options, ...(endpoint.pairing === undefined ? {} : { pairing: endpoint.pairing }) },
    onSocket,
  );
}

/** A socket that is connecting to the endpoint. */
export function dial(endpoint: ConnectEndpoint): net.Socket {
  const { kind, ...where } = endpoint;
  const options = { ...where, allowHalfOpen: true, noDelay: true };
  if (kind === 'tcp' || kind === 'unix') return net.connect(options as net.NetConnectOpts);
  return repnet.connect({ ...options, replicate: kind });
}
