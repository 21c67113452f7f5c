/**
 * How a server recognises the two connections of a flow, and which flows may begin with the second.
 */
import type { Leg } from '../flow/leg.js';
import { comparableAddress, type Hello } from '../wire.js';
import { type Internals, kOptions, kShared } from './server-internals.js';

export function keyOf(address: string | undefined, port: number | undefined): string {
  return `${comparableAddress(address)}|${port}`;
}

/**
 * Returns whether the client sees the same source address as the server: nobody has translated it.
 */
export function sameSource(leg: Leg, hello: Hello): boolean {
  return hello.sourcePort === leg.remotePort && hello.sourceAddress === comparableAddress(leg.remoteAddress);
}

/** Returns 'host:port' (IPv6 in brackets) in the form in which hellos are compared. */
export function comparableTarget(address: string): string {
  const colon = address.lastIndexOf(':');
  const host = address.slice(0, colon).replace(/^\[|\]$/g, '');
  return `${comparableAddress(host)}:${address.slice(colon + 1)}`;
}

export class Origins {
  readonly #owner: Internals;
  /** 'host:port' at which clients reach the server, by its options. */
  readonly known: ReadonlySet<string>;

  constructor(owner: Internals) {
    this.#owner = owner;
    this.known = new Set(owner[kOptions].addresses?.map(comparableTarget));
  }

  /**
   * Returns whether the first connection of this flow can reach only the server that listens on
   * `port`. It may reach another if other processes accept on the address, or if the client dialled
   * an address other than ours (translation, a balancer). The address does not show a balancer that
   * leaves it alone: the options have to say so.
   */
  areOurs(leg: Pick<Leg, 'localAddress'>, { targetAddress, targetPort }: Hello, port: number): boolean {
    if (this.#owner[kShared]) return false;
    if (this.known.has(`${targetAddress}:${targetPort}`)) return true;
    if (this.#owner[kOptions].addresses?.length === 0) return false;
    return targetPort === port && targetAddress === comparableAddress(leg.localAddress);
  }
}
