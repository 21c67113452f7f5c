import * as net from 'node:net';
import './client/dial.js';
import { tellClientSocket } from './net-internals.js';
import { supported } from './net-parts.js';
import type { ReplicationOptions } from './options.js';
import { Server, type ServerOptions } from './server/server.js';
import { Socket, type SocketConnectOptions, type SocketConstructorOptions } from './socket.js';

export type { RepnetErrorCode } from './errors.js';
export { RepnetError } from './errors.js';
export { type CopyName, info, type SocketInfo } from './info.js';
export type { CopyDelay, Defaults, FlowTarget, Mode, Predicate, ReplicationOptions } from './options.js';
export { defaults, disable, enable, isEnabled } from './options.js';
export type { Stats } from './stats.js';
export { resetStats, stats } from './stats.js';
export {
  Server,
  type ServerOptions,
  Socket,
  type SocketConnectOptions,
  type SocketConstructorOptions,
  /**
   * False: the package does not know this version of Node, and has emitted a warning with the code
   * REPNET_UNSUPPORTED. Everything works as plain `net`: nothing is replicated.
   */
  supported,
};

export type ConnectOptions = net.NetConnectOpts & ReplicationOptions;

/** Like `net.connect`, with `ReplicationOptions` beside the usual options. */
export function connect(options: ConnectOptions, connectionListener?: () => void): Socket;
export function connect(port: number, host?: string, connectionListener?: () => void): Socket;
export function connect(path: string, connectionListener?: () => void): Socket;
export function connect(...args: unknown[]): Socket {
  const options = args[0];
  const own = typeof options === 'object' && options !== null ? (options as ConnectOptions) : undefined;
  const socket = new Socket(own as SocketConstructorOptions | undefined);
  tellClientSocket(socket, 'module');
  if (own?.timeout) socket.setTimeout(own.timeout);
  return (socket.connect as (...a: unknown[]) => Socket)(...args);
}
export const createConnection = connect;

export function createServer(connectionListener?: (socket: Socket) => void): Server;
export function createServer(options?: ServerOptions, connectionListener?: (socket: Socket) => void): Server;
export function createServer(...args: unknown[]): Server {
  return new Server(...(args as [ServerOptions, (socket: Socket) => void]));
}

export {
  BlockList,
  getDefaultAutoSelectFamily,
  getDefaultAutoSelectFamilyAttemptTimeout,
  isIP,
  isIPv4,
  isIPv6,
  SocketAddress,
  setDefaultAutoSelectFamily,
  setDefaultAutoSelectFamilyAttemptTimeout,
} from 'node:net';

/** net's legacy name for `Socket`. */
export const Stream = Socket;

// Other exports of this version of net (underscored helpers, later additions) are passed through.
for (const name of Object.getOwnPropertyNames(net)) {
  if (name !== 'default' && !Object.hasOwn(exports, name))
    Object.defineProperty(exports, name, {
      enumerable: true,
      configurable: true,
      get: () => Reflect.get(net, name),
    });
}

// Adds nothing at run time; declares further types of the installed net, like `BoundSocket` of Node
// 26.
export * from 'node:net';

// With the mark of a compiled ES module, `import net from 'repnet'` would look for the name
// 'default'; without it the whole is the default, as of net.
const { __esModule: _mark, ...whole } = Object.getOwnPropertyDescriptors(exports);
module.exports = Object.defineProperties({}, whole);
// Never run: Node finds the names for `import { … }` by reading this file, and the loop above tells
// it none.
if (false as boolean) {
  const _createServerHandle = undefined;
  const _normalizeArgs = undefined;
  const _setSimultaneousAccepts = undefined;
  // From Node 26 on.
  const BoundSocket = undefined;
  const _TransferredBoundSocket = undefined;
  module.exports = {
    _createServerHandle,
    _normalizeArgs,
    _setSimultaneousAccepts,
    BoundSocket,
    _TransferredBoundSocket,
  };
}
