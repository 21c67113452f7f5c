/** Functions that plain connections, RepSYN and RepFlow share. */

import { randomFillSync } from 'node:crypto';
import net from 'node:net';
import type { Copy } from '../flow/machine.js';
import { noteConnect } from '../net-internals.js';
import { type DialTarget, type Inner, setConnecting } from '../socket-internals.js';
import { AddressAttempt, type Attempt, type AttemptOptions, type AttemptSink } from './attempt.js';
import { NameAttempt, type RaceOf } from './attempt-name.js';
import { asAddress } from './resolution.js';

export type ConnectionError = NodeJS.ErrnoException & { localAddress?: string; localPort?: number };

/**
 * Returns the options of one connection to a host and port of its own: those of the application's
 * `connect`, less those that net reads in its constructor alone. `host` is the name that the
 * application dials, or an address; without it net would connect to localhost.
 */
export function legOptions(target: DialTarget, host: string, port: number): AttemptOptions {
  if (!host) throw new TypeError('A connection of a flow needs a host');
  const options = { host, port, allowHalfOpen: true } as AttemptOptions & { [name: string]: unknown };
  for (const name of OF_CONNECT) {
    const value = Reflect.get(target.net, name);
    if (value !== undefined) options[name] = value;
  }
  return options;
}

/**
 * Options that net reads to connect. The block list is the one that the application's socket was
 * made with.
 */
const OF_CONNECT = [
  'localAddress',
  'localPort',
  'family',
  'hints',
  'lookup',
  'autoSelectFamily',
  'autoSelectFamilyAttemptTimeout',
  'blockList',
] as const;

/** Options that only net implements, even where the host is an address. */
const NETS_OWN = [
  'localAddress',
  'localPort',
  'blockList',
  'autoSelectFamily',
  'autoSelectFamilyAttemptTimeout',
] as const;

/**
 * Returns the milliseconds between attempts at the addresses of a name, as net reads its option.
 */
export function attemptDelay({ autoSelectFamilyAttemptTimeout: own }: DialTarget['net']): number {
  return Math.max(LEAST_DELAY, own ?? net.getDefaultAutoSelectFamilyAttemptTimeout());
}

/** The least delay, of net and of RFC 8305, section 8. */
const LEAST_DELAY = 10;

/**
 * Returns how the addresses of a name race. Losers are closed in order, unless the application asks
 * for RST.
 */
export function raceOf(target: DialTarget): RaceOf {
  const { localPort, blockList } = target.net as AttemptOptions & { blockList?: net.BlockList };
  return {
    delay: attemptDelay(target.net),
    loser: target.replication.loser ?? 'fin',
    byNet: localPort !== undefined || blockList !== undefined,
  };
}

/** Returns an attempt at one connection of `target`, to a host and port of its own. */
export function newAttempt(
  copy: Copy,
  sink: AttemptSink,
  target: DialTarget,
  own: { host: string; port: number } & Partial<AttemptOptions>,
): Attempt {
  const options = target.net as AttemptOptions & { blockList?: net.BlockList };
  if (asAddress(own.host) === undefined || NETS_OWN.some((key) => options[key] != null))
    return new NameAttempt(copy, sink, { ...legOptions(target, own.host, own.port), ...own }, raceOf(target));
  return new AddressAttempt(copy, sink, own);
}

let tokens = Buffer.alloc(0);
let nextToken = 0;
/** Returns a token, which is a part of a block of many that nobody writes to again. */
export function newToken(): Buffer {
  if (nextToken === tokens.length) {
    tokens = randomFillSync(Buffer.allocUnsafeSlow(16 * 256));
    nextToken = 0;
  }
  nextToken += 16;
  return tokens.subarray(nextToken - 16, nextToken);
}

export function isCollision(error: NodeJS.ErrnoException | undefined): boolean {
  return error?.code === 'EADDRINUSE' || error?.code === 'EADDRNOTAVAIL';
}

/** Returns whether nobody listens: the port refuses, at every address of a name. */
export function isRefused(error: NodeJS.ErrnoException | undefined): boolean {
  const { errors = [error] } = (error ?? {}) as { errors?: (NodeJS.ErrnoException | undefined)[] };
  return errors.every((each) => each?.code === 'ECONNREFUSED');
}

const OF_THIS_HOST = ['EADDRINUSE', 'EADDRNOTAVAIL', 'EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM'];

/**
 * Returns whether a connection failed for lack of a resource of this host, which says nothing of
 * the server.
 */
export function isShortage(error: NodeJS.ErrnoException | undefined): boolean {
  return error?.code !== undefined && OF_THIS_HOST.includes(error.code);
}

/** Removes the source port, which the application did not choose, from a connection error. */
export function withoutLocal(error: ConnectionError): ConnectionError {
  for (const each of [error, ...((error as { errors?: ConnectionError[] }).errors ?? [])]) {
    if (each.localPort === undefined && each.localAddress === undefined) continue;
    each.message = each.message.replace(/ - Local \([^)]*\)/, '');
    delete each.localAddress;
    delete each.localPort;
  }
  return error;
}

/**
 * Sets the list of attempted addresses, a public property of net's sockets. `port`: the one that
 * the application dials. `other`: an address that was tried beside.
 */
export function copyAttempts(attempt: Attempt, socket: Inner, port: number, other?: string): void {
  const autoSelectFamilyAttemptedAddresses = attempt.autoSelectFamilyAttemptedAddresses?.map((tried) =>
    tried.replace(/:\d+$/, `:${port}`),
  );
  const beside = `${other}:${port}`;
  if (other !== undefined && autoSelectFamilyAttemptedAddresses?.includes(beside) === false)
    autoSelectFamilyAttemptedAddresses.push(beside);
  if (autoSelectFamilyAttemptedAddresses !== undefined)
    Object.assign(socket, { autoSelectFamilyAttemptedAddresses });
}

/**
 * Reports to the application, as net does, that the socket is connected. `startTime`: when
 * connecting began, by `performance.now()`.
 */
export function connected(socket: Inner, target: DialTarget, startTime: number): void {
  setConnecting(socket, false);
  Object.assign(socket, { _sockname: null });
  socket._unrefTimer();
  socket.emit('connect');
  socket.emit('ready');
  if (socket.destroyed) return;
  if (!socket.isPaused()) socket.read(0);
  const { remoteAddress } = socket;
  if (remoteAddress !== undefined) noteConnect(remoteAddress, target.net.port, startTime);
}

/** Events of connecting, of which the application hears once although the flow may begin again. */
export class AttemptEvents {
  readonly #emitted: string[] = [];
  #repeated: string[] = [];

  /** The flow begins again, with the same events. */
  beginAgain(): void {
    this.#repeated = [...this.#emitted];
  }

  /** Returns whether an event is new to the application, which hears of it then. */
  isNew(event: string): boolean {
    const at = this.#repeated.indexOf(event);
    if (at < 0) this.#emitted.push(event);
    else this.#repeated.splice(at, 1);
    return at < 0;
  }
}
