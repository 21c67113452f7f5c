import net from 'node:net';
import type { ReplicationOptions } from './options.js';
import { Server } from './server.js';
import { Socket } from './socket.js';

export type { RepnetErrorCode } from './errors.js';
export { RepnetError } from './errors.js';
export type { Defaults, FlowTarget, Mode, Predicate, ReplicationOptions } from './options.js';
export { defaults } from './options.js';
export type { Stats } from './stats.js';
export { resetStats, stats } from './stats.js';
export { Server, Socket };

export type SocketConstructorOptions = net.SocketConstructorOpts & ReplicationOptions;
export type ConnectOptions = net.NetConnectOpts & ReplicationOptions;
export type ServerOptions = net.ServerOpts & ReplicationOptions;

/** As `net.connect`, with `ReplicationOptions` beside the usual options. */
export function connect(options: ConnectOptions, connectionListener?: () => void): Socket;
export function connect(port: number, host?: string, connectionListener?: () => void): Socket;
export function connect(path: string, connectionListener?: () => void): Socket;
export function connect(...args: unknown[]): Socket {
  const socket = new Socket(typeof args[0] === 'object' ? (args[0] as ConnectOptions) : undefined);
  return (socket.connect as (...a: unknown[]) => Socket)(...args);
}
export const createConnection = connect;

export function createServer(connectionListener?: (socket: Socket) => void): Server;
export function createServer(options?: ServerOptions, connectionListener?: (socket: Socket) => void): Server;
export function createServer(...args: unknown[]): Server {
  return new Server(...(args as [net.ServerOpts, () => void]));
}

export const {
  BlockList,
  SocketAddress,
  isIP,
  isIPv4,
  isIPv6,
  getDefaultAutoSelectFamily,
  setDefaultAutoSelectFamily,
  getDefaultAutoSelectFamilyAttemptTimeout,
  setDefaultAutoSelectFamilyAttemptTimeout,
} = net;

let on = true;
/** Kill switch: new flows are plain from now on; flows under way finish as they are. */
export function disable(): void {
  on = false;
}
export function enable(): void {
  on = true;
}
export function isEnabled(): boolean {
  return on;
}
