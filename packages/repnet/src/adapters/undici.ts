/**
 * A connector for undici: `new Agent({ connect: connector({ replicate: 'flow' }) })`, also for
 * Client and Pool.
 * @module undici
 */
import type { Socket } from 'node:net';
import type { ConnectionOptions, TLSSocket } from 'node:tls';
import { type ConnectOptions, connect, type ReplicationOptions } from '../index.js';
import { connect as connectTls } from './tls.js';

/** The request that undici makes of a connector. */
export interface UndiciConnectRequest {
  readonly hostname: string;
  readonly host?: string;
  readonly protocol: string;
  readonly port: string;
  readonly servername?: string | null;
  readonly localAddress?: string | null;
  readonly httpSocket?: Socket | null;
}

export type UndiciCallback = (...args: [null, Socket | TLSSocket] | [Error, null]) => void;
export type UndiciConnector = (request: UndiciConnectRequest, callback: UndiciCallback) => void;

export interface ConnectorOptions extends ReplicationOptions {
  /** TLS options for https origins. */
  readonly tls?: ConnectionOptions;
  /** ms until the connection must stand; 0 for no bound, as in undici. Default 10000. */
  readonly timeout?: number;
  /** Offer HTTP/2 (undici's Agent needs allowH2 too). */
  readonly allowH2?: boolean;
  /** TLS sessions kept for resumption. Default 100. */
  readonly maxCachedSessions?: number;
}

/**
 * Returns a connector. Failures reach undici as its callback's error, a timeout with code
 * UND_ERR_CONNECT_TIMEOUT.
 */
export function connector(options: ConnectorOptions = {}): UndiciConnector {
  const { tls = {}, timeout = 10_000, allowH2 = false, maxCachedSessions = 100, ...replication } = options;
  const sessions = new Map<string, Buffer>();

  const openTls = (request: UndiciConnectRequest, target: ConnectOptions): TLSSocket => {
    const servername = request.servername ?? tls.servername;
    const key = servername || request.hostname;
    const session = sessions.get(key);
    const socket = connectTls({
      ALPNProtocols: allowH2 ? ['http/1.1', 'h2'] : ['http/1.1'],
      ...tls,
      ...target,
      ...(servername ? { servername } : {}),
      ...(session === undefined ? {} : { session }),
      ...(request.httpSocket ? { socket: request.httpSocket } : {}),
    });
    socket.on('session', (fresh) => {
      sessions.delete(key);
      if (maxCachedSessions === 0) return;
      if (sessions.size >= maxCachedSessions) sessions.delete(sessions.keys().next().value!);
      sessions.set(key, fresh);
    });
    const refused = (): void => {
      sessions.delete(key); // a session that is refused must not be offered again
    };
    socket.once('error', refused).once('secureConnect', () => socket.off('error', refused));
    return socket;
  };

  return (request, callback) => {
    const secure = request.protocol === 'https:';
    const target = {
      ...replication,
      host: request.hostname,
      port: Number(request.port) || (secure ? 443 : 80),
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: 60_000,
      ...(request.localAddress ? { localAddress: request.localAddress } : {}),
    } as ConnectOptions;
    const socket = secure ? openTls(request, target) : connect(target);
    const expire = (): void => {
      const message = `Connect Timeout Error (attempted address: ${request.hostname}:${request.port}, timeout: ${timeout}ms)`;
      socket.destroy(
        Object.assign(new Error(message), { name: 'ConnectTimeoutError', code: 'UND_ERR_CONNECT_TIMEOUT' }),
      );
    };
    const timer = timeout === 0 ? undefined : setTimeout(expire, timeout);
    const settle = (error: Error | null): void => {
      clearTimeout(timer);
      socket.off('error', settle).off(ready, succeed).off('close', closed);
      if (error === null) callback(null, socket);
      else {
        socket.on('error', () => {}); // reported once, above
        callback(error, null);
      }
    };
    const ready = secure ? 'secureConnect' : 'connect';
    const succeed = (): void => settle(null);
    const closed = (): void =>
      settle(Object.assign(new Error('the connection closed before it stood'), { code: 'UND_ERR_SOCKET' }));
    socket.once(ready, succeed).once('error', settle).once('close', closed);
  };
}
