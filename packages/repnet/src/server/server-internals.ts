/** The internal interface of a server, and of net's servers. */
import type * as net from 'node:net';
import type { Handle } from '../net-internals.js';
import type { ServerReplicationOptions } from '../options.js';
import type { Socket } from '../socket.js';
import type { ReplicaListener } from './replica-listener.js';

export type ServerOptions = net.ServerOpts & ServerReplicationOptions & { blockList?: net.BlockList };

export const kOptions = Symbol('repnet.options');
export const kReplication = Symbol('repnet.replication');
export const kShared = Symbol('repnet.shared');

export type ConnectionListener = (socket: Socket) => void;

export interface ServerInstance extends net.Server {
  /** Address of the replica listener; null if there is none. */
  replicaAddress(): net.AddressInfo | null;
}
type ServerStatics = Pick<typeof net.Server, Exclude<keyof typeof net.Server, 'prototype'>>;

export interface ServerConstructor extends ServerStatics {
  new (connectionListener?: ConnectionListener): ServerInstance;
  new (options?: ServerOptions, connectionListener?: ConnectionListener): ServerInstance;
  (options?: ServerOptions | ConnectionListener, connectionListener?: ConnectionListener): ServerInstance;
  readonly prototype: ServerInstance;
}

export interface Internals extends ServerInstance {
  [kOptions]: ServerOptions;
  [kReplication]: ReplicaListener | undefined;
  /** Other processes may accept on the same address. */
  [kShared]: boolean;
  _handle: TcpHandle | null;
  _connections: number;
  _unref: boolean;
  _listen2(
    address: string | null,
    port: number,
    addressType: number | null,
    backlog: number,
    fd: number | undefined,
    flags: number | undefined,
  ): void;
  allowHalfOpen: boolean;
  pauseOnConnect: boolean;
  highWaterMark?: number;
  noDelay: boolean;
  keepAlive: boolean;
  keepAliveInitialDelay: number;
  blockList?: net.BlockList;
}

export interface TcpHandle {
  /** The descriptor; -1 on Windows. */
  fd?: number;
  onconnection?: (this: TcpHandle, error: number, accepted: Handle) => void;
  getpeername?(out: object): number;
  getsockname(out: object): number;
  listen(backlog: number): number;
  close(): void;
}

export type CreateHandle = (
  address: string,
  port: number,
  addressType: number,
  fd: undefined,
  flags: number | undefined,
) => TcpHandle | number;
