/**
 * The limits that a server's application sets for connections, held on both ports and told once per
 * flow.
 */
import type { Leg } from '../flow/leg.js';
import { type Copy, other } from '../flow/machine.js';
import { TidyMap } from '../memory/tidy-map.js';
import type { Handle } from '../net-internals.js';
import { defaults } from '../options.js';
import type { Internals } from './server-internals.js';

/** Connections dropped for a limit, remembered at most. */
const MOST_DROPPED = 1024;

export class Limits {
  readonly #owner: Internals;
  readonly #port: () => number;
  /** Connections that were dropped for a limit, as the application was told, by their source. */
  readonly #dropped = new TidyMap<string, { copy: Copy; until: number }>();

  /** `port`: the first, to which every flow is as far as the application knows. */
  constructor(owner: Internals, port: () => number) {
    this.#owner = owner;
    this.#port = port;
  }

  /**
   * Closes a connection that the BlockList names, as net does: without a word, and without reading
   * one.
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
   * No room for another flow, which is told. `key`: of a flow that has, or may have, another
   * connection.
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

  /** False: the flow's other connection was dropped, and that was told. */
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
