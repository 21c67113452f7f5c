/**
 * Attempts to connect. An attempt yields a native handle; who reads and writes it is decided later.
 */
import type * as net from 'node:net';
import { errnoOf } from '../errors.js';
import { type Copy, REPLICA } from '../flow/machine.js';
import { isScarce } from '../memory/budget.js';
import { ConnectRequest, connectFailure, type Handle, newHandle, tellsAttempts } from '../net-internals.js';
import type { Connection } from '../socket-internals.js';
import { isEphemeral } from './ports.js';

export interface AttemptSink {
  /** The connection is established. */
  attemptOpen(attempt: Attempt, handle: Handle): void;
  /** The connection cannot be established; never called after `abandon`. */
  attemptFailed(attempt: Attempt, error: NodeJS.ErrnoException | undefined): void;
  /** An event of net's occurs ('lookup', 'connectionAttempt' …). */
  attemptEvent(attempt: Attempt, event: string, args: unknown[]): void;
}

/**
 * Returns whether the connection is one to itself: the system has chosen the destination `port` for
 * its source, on this host, where nobody listens.
 */
export function isToItself(handle: Handle, port: number): boolean {
  if (!isEphemeral(port)) return false;
  const own: { address?: string; port?: number } = {};
  const peer: typeof own = {};
  handle.getsockname(own);
  if (own.port === undefined || handle.getpeername(peer) !== 0) return false;
  return own.port === peer.port && own.address === peer.address;
}

export type AttemptOptions = net.TcpNetConnectOpts & net.SocketConstructorOpts;

export interface Attempt extends Connection {
  readonly copy: Copy;
  /** The addresses tried, if a name has several. */
  readonly autoSelectFamilyAttemptedAddresses?: string[];
  /** The source of the connection, as far as it is known. */
  readonly local: { address?: string | undefined; family?: string | undefined; port?: number | undefined };
  /** The system has established the connection, which is not reported yet. */
  readonly isEstablished: boolean;
  /** The destination, if it is known without asking the system. */
  readonly remote: net.AddressInfo | undefined;
  /**
   * Begins in the next tick, as net does for an address, or `atOnce`. Throws net's errors for
   * invalid options.
   */
  start(atOnce?: boolean): void;
  /** Reports the outcome to `sink` from now on. */
  passTo(sink: AttemptSink): void;
  /**
   * Gives up the attempt. `reset`: by RST, if the kernel has established what Node still takes for
   * connecting.
   */
  abandon(reset: boolean): void;
}

const kAttempt = Symbol('repnet.attempt');

function begin(attempt: AddressAttempt): void {
  attempt.begin();
}

function onconnect(status: number, _handle: Handle, request: ConnectRequest): void {
  (request[kAttempt] as AddressAttempt).completed(status, request);
}

/** An attempt at an address: what `net` does for a native handle, without a socket around it. */
export class AddressAttempt implements Attempt {
  readonly copy: Copy;
  readonly #options: AttemptOptions;
  readonly #handle = newHandle();
  #sink: AttemptSink | undefined;

  /** `options.host` is an address; `localAddress` and other options of net do not count here. */
  constructor(copy: Copy, sink: AttemptSink, options: AttemptOptions) {
    this.copy = copy;
    this.#sink = sink;
    this.#options = options;
  }

  start(atOnce = false): void {
    if (atOnce) this.begin();
    else process.nextTick(begin, this);
  }

  begin(): void {
    const { host: address = '', port, localPort } = this.#options;
    const sink = this.#sink;
    if (sink === undefined) return;
    const six = address.includes(':');
    const handle = this.#handle;
    const request = new ConnectRequest();
    request.oncomplete = onconnect;
    request.address = address;
    request.port = port;
    request.addressType = six ? 6 : 4;
    request[kAttempt] = this;
    if (tellsAttempts) sink.attemptEvent(this, 'connectionAttempt', [address, port, request.addressType]);
    if (this.#sink === undefined) return;
    let status = 0;
    if (localPort !== undefined) {
      request.localAddress = six ? '::' : '0.0.0.0';
      request.localPort = localPort;
      status = six
        ? handle.bind6(request.localAddress, localPort, 0)
        : handle.bind(request.localAddress, localPort);
    }
    if (status === 0 && this.copy === REPLICA && isScarce(handle.fd)) status = errnoOf('EMFILE') as number;
    if (status === 0)
      status = six ? handle.connect6(request, address, port) : handle.connect(request, address, port);
    if (status !== 0) this.completed(status, request);
  }

  completed(status: number, request: ConnectRequest): void {
    const sink = this.#sink;
    if (sink === undefined) return;
    const handle = this.#handle;
    if (status === 0 && this.#options.localPort === undefined && isToItself(handle, this.#options.port))
      status = errnoOf('ECONNREFUSED') as number;
    if (status === 0) {
      this.#sink = undefined;
      sink.attemptOpen(this, handle);
      return;
    }
    const error = connectFailure(status, request, (event, args) => sink.attemptEvent(this, event, args));
    if (this.#sink === undefined) return;
    this.#sink = undefined;
    handle.close();
    sink.attemptFailed(this, error);
  }

  passTo(sink: AttemptSink): void {
    if (this.#sink !== undefined) this.#sink = sink;
  }

  abandon(reset: boolean): void {
    if (this.#sink === undefined) return;
    this.#sink = undefined;
    const handle = this.#handle;
    // A handle without a descriptor cannot be reset, and a failed reset leaves a handle that cannot
    // be closed.
    if (reset && (handle.fd ?? -1) >= 0) handle.reset();
    else handle.close();
  }

  /** The system need not be asked for an IPv4 address, which has only one form. */
  get remote(): net.AddressInfo | undefined {
    const { host: address = '', port } = this.#options;
    return address.includes(':') ? undefined : { address, family: 'IPv4', port };
  }

  get local(): { address?: string; family?: string; port?: number } {
    const sockname = {};
    this.#handle.getsockname(sockname);
    return sockname;
  }

  get isEstablished(): boolean {
    return this.#handle.getpeername({}) === 0;
  }

  ref(): void {
    this.#handle.ref();
  }
  unref(): void {
    this.#handle.unref();
  }
}
