/**
 * The sidecar: routes from a listener to a destination, limits, counts and draining. No process, no
 * signals.
 */

import { chmodSync } from 'node:fs';
import { lstat, rm } from 'node:fs/promises';
import * as net from 'node:net';
import { type ConnectEndpoint, describeEndpoint, type ListenEndpoint } from './endpoint.js';
import { type Relay, type RelayEnd, relay } from './relay.js';
import { dial, isReplicating, listener, switchReplication } from './transport.js';

export interface Route {
  readonly listen: ListenEndpoint;
  readonly connect: ConnectEndpoint;
}

export interface SidecarOptions {
  readonly routes: readonly Route[];
  /** Most connections relayed at a time, over all routes; one more is reset at once. */
  readonly maxConnections: number;
  /** ms; 0 for never. */
  readonly connectTimeout: number;
  /** ms without a byte; 0 for never. */
  readonly idleTimeout: number;
  /** Permission bits of a Unix socket that the sidecar makes. */
  readonly socketMode?: number;
  readonly onEvent?: (event: SidecarEvent) => void;
}

export type SidecarEvent =
  | { readonly event: 'listening'; readonly route: string; readonly address: string }
  | {
      readonly event: 'relay-end';
      readonly route: string;
      readonly end: RelayEnd;
      readonly error?: string;
      readonly bytesIn: number;
      readonly bytesOut: number;
      readonly ms: number;
    }
  | { readonly event: 'rejected'; readonly route: string }
  | { readonly event: 'replication'; readonly enabled: boolean }
  | { readonly event: 'listener-error'; readonly route: string; readonly error: string };

export interface RouteCounts {
  readonly route: string;
  open: number;
  accepted: number;
  rejected: number;
  /** Bytes from the near side (who connected to the sidecar) to the far side. */
  bytesIn: number;
  bytesOut: number;
  readonly ends: Record<RelayEnd, number>;
}

export class Sidecar {
  readonly counts: readonly RouteCounts[];
  readonly #options: SidecarOptions;
  readonly #servers: net.Server[] = [];
  readonly #relays = new Set<Relay>();
  #state: 'starting' | 'ready' | 'draining' = 'starting';
  #drained: (() => void) | undefined;

  constructor(options: SidecarOptions) {
    this.#options = options;
    this.counts = options.routes.map((route) => ({
      route: `${describeEndpoint(route.listen)} > ${describeEndpoint(route.connect)}`,
      open: 0,
      accepted: 0,
      rejected: 0,
      bytesIn: 0,
      bytesOut: 0,
      ends: { closed: 0, 'connect-failed': 0, 'connect-timeout': 0, 'idle-timeout': 0, broken: 0 },
    }));
  }

  get state(): 'starting' | 'ready' | 'draining' {
    return this.#state;
  }

  /**
   * Listen on every route; rejects with the first listener's error, having closed the others and
   * what they had accepted.
   */
  async start(): Promise<void> {
    try {
      for (const [index, route] of this.#options.routes.entries())
        await this.#listen(route, this.counts[index]!);
    } catch (error) {
      await this.drain(0);
      throw error;
    }
    this.#state = 'ready';
  }

  /** The addresses bound, in the order of the routes. */
  addresses(): (net.AddressInfo | string | null)[] {
    return this.#servers.map((server) => server.address());
  }

  get replicates(): boolean {
    return isReplicating();
  }

  /**
   * Off if it is on, on if it is off: for connections to come; those there are go on as they are.
   */
  switchReplication(): void {
    this.#options.onEvent?.({ event: 'replication', enabled: switchReplication() });
  }

  /** Say 'draining' to whoever asks for readiness, while still accepting. */
  announceDrain(): void {
    this.#state = 'draining';
  }

  /**
   * Stop accepting, let the relays end by themselves for at most `grace` ms, then reset what is
   * left.
   * @returns how many had to be reset.
   */
  async drain(grace: number): Promise<number> {
    this.announceDrain();
    for (const server of this.#servers) server.close();
    if (this.#relays.size > 0) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, grace);
        this.#drained = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    const left = this.#relays.size;
    for (const one of this.#relays) one.destroy();
    return left;
  }

  async #listen(route: Route, counts: RouteCounts): Promise<void> {
    const server = listener(route.listen, (socket) => this.#accept(socket, route, counts));
    await listenOnce(server, route.listen).catch(async (error: NodeJS.ErrnoException) => {
      const { listen } = route;
      if (listen.kind !== 'unix' || error.code !== 'EADDRINUSE' || !(await leftBehind(listen.path)))
        throw error;
      await rm(listen.path);
      await listenOnce(server, route.listen);
    });
    this.#servers.push(server);
    if (route.listen.kind === 'unix' && this.#options.socketMode !== undefined)
      chmodSync(route.listen.path, this.#options.socketMode);
    server.on('error', (error) =>
      this.#options.onEvent?.({ event: 'listener-error', route: counts.route, error: String(error) }),
    );
    const address = server.address();
    const bound =
      typeof address === 'string' || address === null
        ? String(address)
        : `${address.address}:${address.port}`;
    this.#options.onEvent?.({ event: 'listening', route: counts.route, address: bound });
  }

  #accept(near: net.Socket, route: Route, counts: RouteCounts): void {
    if (this.#relays.size >= this.#options.maxConnections) {
      counts.rejected++;
      this.#options.onEvent?.({ event: 'rejected', route: counts.route });
      near.on('error', () => {}); // it is being thrown away
      if (near.remoteAddress === undefined) near.destroy();
      else near.resetAndDestroy();
      return;
    }
    const began = performance.now();
    const far = dial(route.connect);
    counts.accepted++;
    counts.open++;
    const one = relay(near, far, this.#options, (end, error) => {
      this.#relays.delete(one);
      counts.open--;
      counts.ends[end]++;
      const { bytesIn, bytesOut } = one;
      counts.bytesIn += bytesIn;
      counts.bytesOut += bytesOut;
      this.#options.onEvent?.({
        event: 'relay-end',
        route: counts.route,
        end,
        ...(error === undefined ? {} : { error: (error as NodeJS.ErrnoException).code ?? error.message }),
        bytesIn,
        bytesOut,
        ms: Math.round(performance.now() - began),
      });
      if (this.#relays.size === 0) this.#drained?.();
    });
    this.#relays.add(one);
  }
}

function listenOnce(server: net.Server, endpoint: ListenEndpoint): Promise<void> {
  return new Promise((resolve, reject) => {
    const { kind, ...where } = endpoint;
    server.once('error', reject);
    server.listen(where, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

/** Whether this is a Unix socket of a process that is gone. */
async function leftBehind(path: string): Promise<boolean> {
  // Of any other file, too, the system says that the address is in use and that nobody answers
  // there.
  if (!(await lstat(path)).isSocket()) return false;
  return new Promise((resolve) => {
    const probe = net.connect({ path });
    probe.once('connect', () => {
      probe.destroy();
      resolve(false);
    });
    probe.once('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED'));
  });
}
