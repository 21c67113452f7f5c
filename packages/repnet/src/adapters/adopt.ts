/**
 * Servers of Node's own (http, https, tls, and what is built on them) fed with replicated
 * connections. Such a server cannot be subclassed onto another transport, but takes any duplex
 * stream by its documented 'connection' event. A repnet server in front listens, and answers the
 * methods that concern listening.
 */
import type { BlockList, Server as NetServer, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { createServer, type ServerOptions } from '../index.js';

const adopted = new WeakSet<NetServer>();

/** Fields in which a server of net keeps the options that it applies to accepted connections. */
interface MadeWith {
  readonly allowHalfOpen?: boolean;
  readonly pauseOnConnect?: boolean;
  readonly noDelay?: boolean;
  readonly keepAlive?: boolean;
  /** Seconds. */
  readonly keepAliveInitialDelay?: number;
  readonly highWaterMark?: number;
  readonly blockList?: BlockList;
}

/** Fields of a server that its sockets use when they close. */
interface Counting {
  _connections: number;
  _emitCloseIfDrained(): void;
}

/** The option is newer than the types. */
type Front = NetServer & { dropMaxConnection?: boolean };

function madeWith(server: MadeWith): ServerOptions {
  const { allowHalfOpen, pauseOnConnect, noDelay, keepAlive, highWaterMark, blockList } = server;
  const keepAliveInitialDelay = (server.keepAliveInitialDelay ?? 0) * 1000;
  return {
    allowHalfOpen,
    pauseOnConnect,
    noDelay,
    keepAlive,
    keepAliveInitialDelay,
    highWaterMark,
    blockList,
  };
}

/**
 * Makes `server` take its connections from a repnet server. `listen`, `close`, `address`,
 * `getConnections`, `ref`, `unref`, `listening`, `maxConnections` and `dropMaxConnection` then
 * concern both ports. Options that the server was made with (`noDelay`, `keepAlive`,
 * `highWaterMark` and the like) hold, unless `options` say otherwise.
 * @throws TypeError ERR_REPNET_ADOPTED if the server already listens or was adopted before.
 */
export function adopt<S extends NetServer>(server: S, options: ServerOptions = {}): S {
  if (server.listening || adopted.has(server)) {
    throw Object.assign(
      new TypeError('adopt() needs a server that does not listen yet and was not adopted before'),
      { code: 'ERR_REPNET_ADOPTED' },
    );
  }
  adopted.add(server);
  const { maxConnections, dropMaxConnection } = server as Front;
  const front: Front = createServer({ ...madeWith(server as MadeWith), ...options });
  if (maxConnections != null) front.maxConnections = maxConnections;
  if (dropMaxConnection != null) front.dropMaxConnection = dropMaxConnection;
  for (const event of ['listening', 'error', 'drop']) {
    front.on(event, (...args: unknown[]) => server.emit(event, ...args));
  }
  front.on('connection', (socket) => {
    // net counts sockets by these: the two properties below pass its changes on to the server in
    // front.
    Object.assign(socket, { server, _server: server });
    server.emit('connection', socket);
  });
  const closeOwn = server.close.bind(server);
  const { _emitCloseIfDrained: emitOwn } = server as unknown as Counting;
  let closing = false;
  front.on('close', () => {
    closing = true;
    closeOwn(); // emits 'close'
    closing = false;
  });
  const closeFront = front.close.bind(front);
  // The signal that listen() was given closes by this, too.
  front.close = (callback) => {
    // http's close also ends idle kept-alive connections; without that the front would wait for
    // them.
    (server as { closeIdleConnections?: () => void }).closeIdleConnections?.();
    return closeFront(callback);
  };
  const own: PropertyDescriptorMap & ThisType<S> = {
    listen: {
      value: (...args: unknown[]) => {
        const listening = args.at(-1);
        if (typeof listening === 'function') server.once('listening', args.pop() as () => void);
        (front.listen as (...args: unknown[]) => void)(...args);
        return server;
      },
    },
    close: {
      value: (callback?: (error?: Error) => void) => {
        // Called once the server emits 'close', as with net; a front that did not listen has an
        // error for it.
        front.close(callback && ((error) => server.once('close', () => callback(error))));
        return server;
      },
    },
    [Symbol.asyncDispose]: {
      value: () =>
        new Promise<void>((resolve, reject) => {
          if (!front.listening) resolve();
          else server.close((error) => (error === undefined ? resolve() : reject(error)));
        }),
    },
    _connections: {
      get: () => (front as unknown as Counting)._connections,
      set: (connections: number) => {
        (front as unknown as Counting)._connections = connections;
      },
    },
    _emitCloseIfDrained: {
      value: () => {
        if (closing) emitOwn.call(server);
        else (front as unknown as Counting)._emitCloseIfDrained();
      },
    },
    address: { value: () => front.address() },
    getConnections: {
      value: (callback: (error: Error | null, count: number) => void) => {
        front.getConnections(callback);
        return server;
      },
    },
    ref: {
      value: () => {
        front.ref();
        return server;
      },
    },
    unref: {
      value: () => {
        front.unref();
        return server;
      },
    },
    listening: { get: () => front.listening },
    maxConnections: {
      get: () => front.maxConnections,
      set: (value: number) => (front.maxConnections = value),
    },
    dropMaxConnection: {
      get: () => front.dropMaxConnection,
      set: (value: boolean) => (front.dropMaxConnection = value),
    },
  };
  for (const key of Reflect.ownKeys(own))
    Object.defineProperty(server, key, { ...own[key as string], configurable: true });
  return server;
}

const ADDRESSES = [
  'remoteAddress',
  'remotePort',
  'remoteFamily',
  'localAddress',
  'localPort',
  'localFamily',
] as const;

/** Events that a TLS socket emits if it connects by itself, but not over another socket. */
const EVENTS = [
  'lookup',
  'connectionAttempt',
  'connectionAttemptFailed',
  'connectionAttemptTimeout',
  'ready',
] as const;

/**
 * Returns the stream that `start` makes over `socket`, with the addresses and events of `socket`,
 * and its error as the reason to close, as if the stream had connected by itself. If `start`
 * throws, as for an invalid certificate, nobody has `socket`, and it is closed.
 */
export function startOver<S extends Duplex | null | undefined>(socket: Socket, start: () => S): S {
  let secure: S;
  try {
    secure = start();
  } catch (error) {
    socket.destroy();
    throw error;
  }
  if (secure == null) return secure;
  // Node's tls asks the native handle, and a replicated socket that is still connecting has none.
  for (const name of ADDRESSES)
    Object.defineProperty(secure, name, { configurable: true, enumerable: true, get: () => socket[name] });
  for (const event of EVENTS)
    socket.on(event, (...args: unknown[]) => {
      if (!secure.destroyed) secure.emit(event, ...args);
    });
  // tls emits the error of `socket`, and forgets it when it closes.
  socket.once('error', () => {
    const { emit } = secure;
    secure.emit = (event: string, ...args: unknown[]) =>
      emit.call(secure, event, ...(event === 'close' ? [true] : args));
  });
  return secure;
}
