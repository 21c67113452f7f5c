/**
 * TLS over replicated sockets. Each record is encrypted once and carried by both copies, so nothing
 * is weaker than with plain TCP.
 * @module tls
 */

import { isIP } from 'node:net';
import * as tls from 'node:tls';
import { type ConnectOptions, connect as connectSocket, type ServerOptions } from '../index.js';
import { adopt, startOver } from './adopt.js';

export type TlsConnectOptions = tls.ConnectionOptions & Partial<ConnectOptions>;
type SecureConnectionListener = (socket: tls.TLSSocket) => void;
export type TlsServerOptions = tls.TlsOptions & ServerOptions;

/**
 * Like `tls.connect`, over a repnet socket; takes the options of `repnet.connect`, too. With
 * `options.socket` it is `tls.connect`: the caller has chosen the transport.
 */
export function connect(options: TlsConnectOptions, onSecure?: () => void): tls.TLSSocket;
export function connect(port: number, options?: TlsConnectOptions, onSecure?: () => void): tls.TLSSocket;
export function connect(
  port: number,
  host?: string,
  options?: TlsConnectOptions,
  onSecure?: () => void,
): tls.TLSSocket;
export function connect(path: string, options?: TlsConnectOptions, onSecure?: () => void): tls.TLSSocket;
export function connect(...args: unknown[]): tls.TLSSocket {
  const last = args.at(-1);
  return connectOver(
    normalize(args),
    typeof last === 'function' ? (last as SecureConnectionListener) : undefined,
  );
}

/**
 * Returns the arguments of `connect` as one object. The host in the options counts if it is given
 * twice, as with tls.
 */
function normalize([first, second, third]: unknown[]): TlsConnectOptions {
  if (typeof first === 'object' && first !== null) return first as TlsConnectOptions;
  const isPath = typeof first === 'string' && !(Number(first) >= 0);
  const where = isPath ? { path: first } : { port: first as number };
  const host = !isPath && typeof second === 'string' ? { host: second } : {};
  const options = [second, third].find((each) => typeof each === 'object' && each !== null);
  return { ...where, ...host, ...options } as TlsConnectOptions;
}

function connectOver(
  options: TlsConnectOptions,
  onSecure: SecureConnectionListener | undefined,
): tls.TLSSocket {
  const secured = onSecure as (() => void) | undefined;
  if (options.socket !== undefined) return tls.connect(options, secured);
  const { signal, timeout, ...transport } = options as TlsConnectOptions & { signal?: AbortSignal };
  const host = options.host ?? 'localhost';
  const servername = options.servername ?? (isIP(host) === 0 ? host : '');
  const socket = connectSocket({ ...transport, host: options.host } as ConnectOptions);
  const secure = startOver(socket, () => tls.connect({ ...options, socket, servername }, secured));
  if (timeout !== undefined) secure.setTimeout(timeout);
  if (signal !== undefined) abortWith(signal, secure);
  return secure;
}

function abortWith(signal: AbortSignal, socket: tls.TLSSocket): void {
  const abort = (): void => {
    socket.destroy(new DOMException('The operation was aborted', 'AbortError'));
  };
  if (signal.aborted) process.nextTick(abort);
  else {
    signal.addEventListener('abort', abort, { once: true });
    socket.once('close', () => signal.removeEventListener('abort', abort));
  }
}

/**
 * Like `tls.createServer([options][, secureConnectionListener])`, but listens through repnet on
 * both ports.
 */
export function createServer(
  options: TlsServerOptions | SecureConnectionListener = {},
  onSecureConnection?: SecureConnectionListener,
): tls.Server {
  // As an option of the server below it would be given the connections that carry TLS.
  if (typeof options === 'function') return createServer({}, options);
  return adopt(tls.createServer(options, onSecureConnection), options);
}
