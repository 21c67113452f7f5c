/**
 * HTTP and HTTPS over replicated sockets: agents for the client, helpers for the server.
 * @module http
 */
import * as http from 'node:http';
import * as https from 'node:https';
import { isIP, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import {
  type ConnectOptions,
  connect,
  type Predicate,
  type ReplicationOptions,
  type ServerOptions,
} from '../index.js';
import { CONNECTION_OPTIONS, checkOptionNames } from '../options.js';
import { adopt, startOver } from './adopt.js';

export { adopt };

type OnSocket = (error: Error | null, socket: Duplex) => void;

/** Predicates differ by identity: two of the same text may know different things. */
const predicates = new WeakMap<Predicate, number>();
let predicateCount = 0;

function nameOf(value: unknown): string {
  if (typeof value !== 'function') return String(value);
  let number = predicates.get(value as Predicate);
  if (number === undefined) {
    number = ++predicateCount;
    predicates.set(value as Predicate, number);
  }
  return `function ${number}`;
}

/**
 * Kept-alive connections are shared only between requests that ask for the same kind of connection.
 */
function poolName(name: string, options: ReplicationOptions | undefined): string {
  if (options === undefined) return name;
  for (const option of Object.keys(CONNECTION_OPTIONS) as (keyof ReplicationOptions)[]) {
    const value = options[option];
    if (value != null) name += `:${option}=${nameOf(value)}`;
  }
  return name;
}

/**
 * Options of http.Agent and of repnet.connect; others follow `repnet.defaults`. As with every
 * option of an agent, one that the agent has wins over the same one of a request.
 */
export type AgentOptions = http.AgentOptions & ReplicationOptions;

function wellSpelt<T extends object>(options: T | undefined): T | undefined {
  if (options !== undefined) checkOptionNames(options);
  return options;
}

/** http.Agent whose connections are replicated. */
export class Agent extends http.Agent {
  /** @throws RepnetError ERR_REPNET_OPTION if an option is misspelt. */
  constructor(options?: AgentOptions) {
    super(wellSpelt(options));
  }

  override createConnection(
    options: http.ClientRequestArgs & ReplicationOptions,
    _onSocket?: OnSocket,
  ): Socket {
    return connect(options as ConnectOptions);
  }

  override getName(options?: Parameters<http.Agent['getName']>[0] & ReplicationOptions): string {
    return poolName(super.getName(options), options);
  }
}

export type HttpsAgentOptions = https.AgentOptions & ReplicationOptions;

/** https.Agent whose TLS connections run over replicated ones. */
export class HttpsAgent extends https.Agent {
  /** @throws RepnetError ERR_REPNET_OPTION if an option is misspelt. */
  constructor(options?: HttpsAgentOptions) {
    super(wellSpelt(options));
  }

  override createConnection(
    options: https.RequestOptions & ReplicationOptions,
    onSocket?: OnSocket,
  ): Duplex | null | undefined {
    const { timeout, ...transport } = options;
    const socket = connect(transport as ConnectOptions);
    const host = options.host ?? 'localhost';
    const servername = options.servername ?? (isIP(host) === 0 ? host : '');
    const secure = startOver(socket, () =>
      super.createConnection({ ...options, servername, socket } as https.RequestOptions, onSocket),
    );
    // tls leaves the timeout of a TLS socket over another one to whoever made the other.
    if (timeout !== undefined) (secure as Socket | null | undefined)?.setTimeout(timeout);
    return secure;
  }

  override getName(options?: https.RequestOptions & ReplicationOptions): string {
    return poolName(super.getName(options), options);
  }
}

/** Like `http.createServer`, but listens through repnet on both ports. */
export function createServer(onRequest?: http.RequestListener): http.Server;
export function createServer(
  options: http.ServerOptions & ServerOptions,
  onRequest?: http.RequestListener,
): http.Server;
export function createServer(
  options: (http.ServerOptions & ServerOptions) | http.RequestListener = {},
  onRequest?: http.RequestListener,
): http.Server {
  if (typeof options === 'function') return createServer({}, options);
  return adopt(http.createServer(options, onRequest), transport(options));
}

/** Like `https.createServer`, but listens through repnet on both ports. */
export function createHttpsServer(onRequest?: http.RequestListener): https.Server;
export function createHttpsServer(
  options: https.ServerOptions & ServerOptions,
  onRequest?: http.RequestListener,
): https.Server;
export function createHttpsServer(
  options: (https.ServerOptions & ServerOptions) | http.RequestListener = {},
  onRequest?: http.RequestListener,
): https.Server {
  if (typeof options === 'function') return createHttpsServer({}, options);
  return adopt(https.createServer(options, onRequest), transport(options));
}

/**
 * Adds the socket options of http's own server: no delay, and half-open, since a client may end its
 * side after the request.
 */
function transport(options: ServerOptions): ServerOptions {
  return { ...options, allowHalfOpen: true, noDelay: options.noDelay ?? true };
}
