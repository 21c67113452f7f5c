/** The server of a second port, and finding a pair of free ports for `listen(0)`. */
import * as net from 'node:net';
import { listenError } from '../errors.js';
import { untoldServer } from '../net-internals.js';
import { samePort } from '../options.js';
import { type CreateHandle, type Internals, kOptions, type TcpHandle } from './server-internals.js';

/** The address of the first port. */
export interface Bound {
  address: string;
  family: string;
  port: number;
}

export interface ListenBeside {
  backlog: number;
  flags: number | undefined;
  /** The first port was the system's choice. */
  random: boolean;
  /** A cluster's primary listens for its workers. */
  viaPrimary: boolean;
}

/**
 * A server whose listening only `listens` hears of. net would publish it on its channels and, in a
 * worker of a cluster, to the primary, which would take the port for one of the application's.
 */
export class SecondServer extends net.Server {
  declare _handle: TcpHandle | null;
  declare _unref: boolean;
  readonly #listens: (handle: TcpHandle) => void;

  constructor(listens: (handle: TcpHandle) => void) {
    super();
    this.#listens = listens;
  }

  /** Called by net in a worker of a cluster, with the handle that the primary has given. */
  _listen2(address: string, port: number, _addressType: number, backlog: number): void {
    const handle = this._handle as TcpHandle;
    // 511 is net's own.
    const errno = handle.listen(backlog || 511);
    if (errno !== 0) {
      this._handle = null;
      handle.close();
      process.nextTick(() => this.emit('error', listenError(errno, address, port)));
      return;
    }
    if (this._unref) this.unref();
    this.#tell();
  }

  /**
   * Listens as net does, unless the server has a listening handle. Returns 0 or an error number.
   */
  #bind({ address, family }: Bound, port: number, backlog: number, flags: number | undefined): number {
    if (this._handle !== null) return 0;
    const handle = createHandle(address, port, family === 'IPv6' ? 6 : 4, undefined, flags);
    if (typeof handle === 'number') return handle;
    const errno = handle.listen(backlog || 511);
    if (errno === 0) this._handle = handle;
    else handle.close();
    return errno;
  }

  #tell(): void {
    if (this._handle !== null) this.#listens(this._handle);
  }

  /**
   * Listens on `replicaPort`, or else on the successor of the first port. A port that was asked for
   * by number has to be free; without the successor the server is a plain one, with a warning.
   * Returns false if listening is known to have failed; `failed` will be called.
   */
  listenBeside(
    bound: Bound,
    replicaPort: number | undefined,
    { backlog, flags, random, viaPrimary }: ListenBeside,
    failed: (error: Error) => void,
  ): boolean {
    const port = replicaPort ?? bound.port + 1;
    const required = replicaPort !== undefined;
    this.once('error', (error: NodeJS.ErrnoException) => {
      // A worker's random port comes from the cluster's primary, which knows nothing of pairs.
      if (viaPrimary && random) return;
      if (!required) return warnOfPlain(bound, port, error);
      error.message += `: the second port of the server on ${bound.port}, for replicas (option replicaPort)`;
      failed(error);
    });
    if (port === bound.port) {
      process.nextTick(failed, samePort(port));
      return false;
    }
    if (port > 65535) {
      // There is no successor: replicas cannot be offered, flows are plain.
      return true;
    }
    if (viaPrimary) {
      untoldServer(this, () => this.listen({ port, host: bound.address, backlog }));
      return true;
    }
    const errno = this.#bind(bound, port, backlog, flags);
    if (errno !== 0) process.nextTick(() => this.emit('error', listenError(errno, bound.address, port)));
    this.#tell();
    return this._handle !== null || !required;
  }
}

function warnOfPlain(bound: Bound, port: number, { code }: NodeJS.ErrnoException): void {
  process.emitWarning(
    `Port ${port}, on which the server on port ${bound.port} would take second connections for replicas, cannot be had (${code}): ` +
      'its flows are plain. The option replicaPort names another port',
    { type: 'RepnetWarning', code: 'REPNET_SECOND_PORT' },
  );
}

/** Returns a bound handle, or an error number, by net's own function, which programs replace. */
const createHandle: CreateHandle = (...args) =>
  (net as unknown as { _createServerHandle: CreateHandle })._createServerHandle(...args);

/**
 * Returns two listening handles: on a free port, and on its successor (or the `replicaPort` asked
 * for). Undefined if there are none.
 */
export function bindPair(
  server: Internals,
  address: string | null,
  addressType: number | null,
  flags: number | undefined,
  backlog: number,
): { first: TcpHandle; second: TcpHandle } | undefined {
  const bind = (port: number): TcpHandle | undefined => {
    const wildcards: [string, number][] = [
      ['::', 6],
      ['0.0.0.0', 4],
    ];
    const where: [string, number][] =
      address === null || address === undefined ? wildcards : [[address, addressType ?? 4]];
    for (const [host, family] of where) {
      const handle = createHandle(host, port, family, undefined, flags);
      if (typeof handle === 'number') continue;
      // Only listening shows: a port in use by connections can be bound.
      if (handle.getsockname({}) === 0 && handle.listen(backlog || 511) === 0) return handle;
      handle.close();
    }
    return undefined;
  };
  const spare: TcpHandle[] = [];
  try {
    for (let attempt = 0; attempt < 256; attempt++) {
      // The kernel lets clients connect from the successors of the ports that it chooses. Where
      // many connections are open, or have just closed, all of those may be taken: then a port
      // below that range is tried.
      const first = bind(attempt < 16 ? 0 : 10_000 + Math.floor(Math.random() * 22_000));
      // Another process may have begun to listen on it at this moment.
      if (first === undefined) continue;
      const bound = {} as { port: number };
      first.getsockname(bound);
      const wanted = server[kOptions].replicaPort ?? bound.port + 1;
      const second = wanted <= 65535 ? bind(wanted) : undefined;
      if (second !== undefined) return { first, second };
      spare.push(first);
    }
    return undefined;
  } finally {
    for (const handle of spare) handle.close();
  }
}
