/**
 * Limits that a server's application sets for connections: they hold for both ports, and 'drop' is
 * emitted once per flow.
 */
import type { Leg } from '../flow/leg.js';
import { type Copy, other } from '../flow/machine.js';
import { TidyMap } from '../memory/tidy-map.js';
import type { Handle } from '../net-internals.js';
import { defaults } from '../options.js';
import type { Internals } from './server-internals.js';

/** The most dropped connections that are remembered. */
const MOST_DROPPED = 1024;

export class Limits {
  readonly #owner: Internals;
  readonly #port: () => number;
  /** Connections dropped for a limit, of which the application has heard, by their source. */
  readonly #dropped = new TidyMap<string, { copy: Copy; until: number }>();

  /** `port`: the first port, which the application takes for that of every flow. */
  constructor(owner: Internals, port: () => number) {
    this.#owner = owner;
    this.#port = port;
  }

  /**
   * Closes a connection that the BlockList names, as net does, without writing or reading a byte.
   * Returns whether it did.
   */
  blocks(connection: Handle): boolean {
    const { blockList } = this.#owner;
    if (blockList === undefined) return false;
    const peer: { address?: string; family?: string } = {};
    connection.getpeername(peer);
    if (!blockList.check(peer.address ?? '', peer.family === 'IPv6' ? 'ipv6' : 'ipv4')) return false;
    connection.close();
    return true;
  }

  /**
   * Returns whether there is no room for another flow, after emitting 'drop'. `key`: of a flow that
   * has, or may have, another connection.
   */
  full(leg: Leg, key?: string): boolean {
    const owner = this.#owner;
    if (owner.maxConnections == null || owner._connections < owner.maxConnections) return false;
    if (owner.maxConnections === 0 && Number(process.versions.node.split('.')[0]) < 22) return false;
    if (key !== undefined && !this.tellsDrop(key, leg.copy)) return true;
    owner.emit('drop', {
      __proto__: null,
      localAddress: leg.localAddress,
      localPort: this.#port(),
      localFamily: leg.localFamily,
      remoteAddress: leg.remoteAddress,
      remotePort: leg.remotePort,
      remoteFamily: leg.remoteFamily,
    });
    return true;
  }

  /**
   * Returns false if the flow's other connection was dropped, and the application has heard of
   * that.
   */
  tellsDrop(key: string, copy: Copy): boolean {
    const now = performance.now();
    const before = this.#dropped.get(key);
    this.#dropped.delete(key);
    if (before?.copy === other(copy) && now < before.until) return false;
    if (this.#dropped.size >= MOST_DROPPED) this.#dropped.delete(this.#dropped.oldest as string);
    this.#dropped.set(key, { copy, until: now + defaults.waitTimeout });
    return true;
  }
}
