/** The internal interface of a socket, and of net's sockets. */
import type * as net from 'node:net';
import type { Bridge } from './bridge.js';
import type { Flow } from './flow/flow.js';
import type { Copy } from './flow/machine.js';
import type { Outer } from './flow/roles.js';
import { giveHandle, type Handle } from './net-internals.js';
import type { Replication, ReplicationOptions } from './options.js';
import type { Participant } from './trial.js';

export type Callback = (error?: Error | null) => void;

/**
 * A connection, an attempt at one, or a wait for one: keeps the process alive unless unreferenced.
 */
export interface Connection {
  ref(): unknown;
  unref(): unknown;
}

/**
 * The state of a socket that is not carried by net alone: attached in place of a native handle, or
 * beside one.
 */
export interface Attachment {
  /**
   * The flow, once there is one. Before, the socket is connecting, or plain and waiting for its
   * second connection.
   */
  flow: Flow | undefined;
  /** Both ends have joined the two connections. */
  readonly paired: boolean;
  /** A native handle is in use by the socket itself (accepted, unpaired). */
  readonly native: boolean;
  /** Replication has nothing to do with the socket, or not any more. */
  readonly plain?: true;
  /**
   * The stream behind the socket's `_handle`, once something has read that; native code may hold
   * it, so it stays.
   */
  bridge?: Bridge | undefined;
  /**
   * Methods of net's run on the socket, and are to find its native handle. Set by whoever attaches.
   */
  natively?: boolean;
  /** Bytes read from the native handle that net would not have read yet. */
  readonly unread?: number;
  /** Returns bytes that go before the application's next ones; called once. */
  preface?(): Buffer;
  /** Keeps bytes for the second connection. */
  archive?(bytes: Buffer): void;
  /** A write that was archived failed: returns the error for the application, if it is one. */
  failed?(error: NodeJS.ErrnoException): Error | null;
  /** The application ends the stream. */
  ending?(): void;
  /** The socket is about to be destroyed, and still has its native handle. */
  closing?(): void;
  /**
   * The native connection ended or failed. Returns whether that is held back, since a second
   * connection may know better.
   */
  holds?(error: Error | null): boolean;
  /**
   * The socket is sent to another process: leaves it with nothing but a native handle. Returns
   * false, without any effect, if that would not be all there is to its flow.
   */
  handOver(): boolean;
  /** The socket is being destroyed. */
  closed(reset: boolean): void;
  /** Yields every connection, and the waits when they are at their end. */
  connections(): Iterable<Connection>;
  /** The addresses of both ends of the flow, with the port that the application knows. */
  peername(): object;
  sockname(): object;
}

export const kAttachment = Symbol('repnet.attachment');
export const kOptions = Symbol('repnet.options');
export const kBacklog = Symbol('repnet.backlog');
export const kSkew = Symbol('repnet.skew');
export const kUnref = Symbol('repnet.unref');
export const kPeerPort = Symbol('repnet.peerPort');
export const kRace = Symbol('repnet.race');
export const kBegun = Symbol('repnet.begun');
export const kTrial = Symbol('repnet.trial');

export const noSkew: readonly [number, number] = [0, 0];

/** The socket as this package sees it. */
export interface Inner extends net.Socket, Outer {
  destroy(error?: Error | null, done?: Callback): this;
  _pendingData: unknown;
  _read(n: number): void;
  [kAttachment]: Attachment | undefined;
  [kOptions]: ReplicationOptions | undefined;
  [kBacklog]: number;
  [kUnref]: boolean;
  /** The port that the application dialled, where the connection is to another. */
  [kPeerPort]: number | undefined;
  /**
   * RepSYN: the connection that was established first; 'open' while that is open, or if it cannot
   * be known.
   */
  [kRace]: Copy | 'open' | undefined;
  /** The socket was dialled, and has not been destroyed since. */
  [kBegun]: boolean;
  /** The socket's part in the trial, until the first byte of the reply. */
  [kTrial]: Participant | undefined;
  /** Bytes of the protocol, not the application's, in the handle's counters: read, written. */
  [kSkew]: readonly [number, number] | undefined;
  resetAndClosing?: boolean;
  _server?: unknown;
  _peername?: object;
  _unrefTimer(): void;
  _getpeername(): object;
  _getsockname(): object;
  _undestroy(): void;
  _reset(): void;
  _writeGeneric(writev: boolean, data: unknown, encoding: BufferEncoding, done: Callback): void;
}

/** The target of `connect`, and the replication to use. */
export interface DialTarget {
  mode: 'flow' | 'syn';
  net: net.TcpNetConnectOpts & { host: string };
  replication: Replication;
}

/** The fields of a new socket. */
export function prepare(socket: Inner, options: ReplicationOptions | undefined): void {
  socket[kAttachment] = undefined;
  socket[kOptions] = options;
  socket[kBacklog] = 0;
  socket[kUnref] = false;
  socket[kPeerPort] = undefined;
  socket[kRace] = undefined;
  socket[kBegun] = false;
  socket[kTrial] = undefined;
  socket[kSkew] = noSkew;
}

/**
 * Sets the server that accepted a socket, as net does. net's types have had the field since Node
 * 26.
 */
export function setServer(socket: object, server: object): void {
  const accepted = socket as { server: object; _server: object };
  accepted.server = accepted._server = server;
}

/** Sets net's flag, which is read-only in its types. */
export function setConnecting(socket: net.Socket, value: boolean): void {
  (socket as { connecting: boolean }).connecting = value;
}

/** Returns whether a socket is of this package, and not of another copy of it. */
export function isOurs(socket: object | null | undefined): socket is Inner {
  return socket != null && kAttachment in socket;
}

/** RepSYN: the connections race (`'open'`), and one has won. */
export function setRace(socket: net.Socket, race: Copy | 'open'): void {
  (socket as Inner)[kRace] = race;
}

export function attachment(socket: net.Socket): Attachment | undefined {
  return (socket as Inner)[kAttachment];
}

export function attach(socket: net.Socket, what: Attachment): void {
  const inner = socket as Inner;
  const before = inner[kAttachment];
  what.bridge = before?.bridge;
  what.natively = before?.natively ?? false;
  inner[kAttachment] = what;
}

/** An attachment without a flow. The native handle knows the addresses of both ends. */
export abstract class Flowless implements Attachment {
  readonly flow = undefined;
  readonly paired = false;
  abstract readonly native: boolean;
  abstract handOver(): boolean;

  closed(): void {}
  connections(): Iterable<Connection> {
    return [];
  }
  peername(): object {
    return {};
  }
  sockname(): object {
    return {};
  }
}

/** Attached to a plain socket from which native code may read through the bridge. */
class Bridged extends Flowless {
  readonly plain = true;
  readonly native = true;
  bridge: Bridge | undefined;
  natively: boolean;

  constructor(bridge: Bridge, natively: boolean) {
    super();
    this.bridge = bridge;
    this.natively = natively;
  }

  handOver(): boolean {
    return true;
  }
}

/** Returns the attachment of a socket that becomes plain: its bridge alone, if it has one. */
function bridgedOnly(before: Attachment | undefined): Attachment | undefined {
  return before?.bridge === undefined ? undefined : new Bridged(before.bridge, before.natively === true);
}

/**
 * The socket is plain from now on. If native code reads through the bridge, it goes on doing so.
 */
export function detach(socket: net.Socket): void {
  const inner = socket as Inner;
  inner[kAttachment] = bridgedOnly(inner[kAttachment]);
}

/** The socket has no attachment while net connects it, and is plain afterwards. */
export function detachToConnect(socket: net.Socket): void {
  const inner = socket as Inner;
  const plain = bridgedOnly(inner[kAttachment]);
  inner[kAttachment] = undefined;
  if (plain !== undefined)
    inner.prependOnceListener('connect', () => {
      plain.natively = false;
      inner[kAttachment] = plain;
    });
}

/** Gives a handle to a socket over a flow, which is native from now on. */
export function becomeNative(socket: net.Socket, handle: Handle): void {
  const inner = socket as Inner;
  const plain = bridgedOnly(inner[kAttachment]);
  inner[kAttachment] = undefined;
  giveHandle(handle, socket);
  inner[kAttachment] = plain;
}

/** Replication has nothing to do with the socket, or not any more. */
export function isPlain(socket: Inner): boolean {
  const attached = socket[kAttachment];
  return attached === undefined || attached.plain === true;
}

/**
 * Counters of the native handle include `read` and `written` bytes that are not the application's.
 */
export function setSkew(socket: net.Socket, read: number, written: number): void {
  (socket as Inner)[kSkew] = [read, written];
}

/** Sets the peer's port as the application sees it. */
export function setPeerPort(socket: net.Socket, port: number): void {
  (socket as Inner)[kPeerPort] = port;
}

/** Returns whether the application does not want the socket to keep the process alive. */
export function isUnref(socket: net.Socket): boolean {
  return (socket as Inner)[kUnref];
}
