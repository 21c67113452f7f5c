/**
 * How a server recognises the two connections of a flow, and which flows may begin with the second.
 */
import type { Leg } from '../flow/leg.js';
import { comparableAddress, type Hello } from '../wire.js';
import { type Internals, kOptions, kShared } from './server-internals.js';

export function keyOf(address: string | undefined, port: number | undefined): string {
  return `${comparableAddress(address)}|${port}`;
}

/** The client sees the connection come from where we do: nobody has translated its address. */
export function sameSource(leg: Leg, hello: Hello): boolean {
  return hello.sourcePort === leg.remotePort && hello.sourceAddress === comparableAddress(leg.remoteAddress);
}

/** 'host:port' (IPv6 in brackets) in the form a hello is compared in. */
export function comparableTarget(address: string): string {
  const colon = address.lastIndexOf(':');
  const host = address.slice(0, colon).replace(/^\[|\]$/g, '');
  return `${comparableAddress(host)}:${address.slice(colon + 1)}`;
}

export class Origins {
  readonly #owner: Internals;
  /** 'host:port' at which clients reach the server, by its own word. */
  readonly known: ReadonlySet<string>;

  constructor(owner: Internals) {
    this.#owner = owner;
    this.known = new Set(owner[kOptions].addresses?.map(comparableTarget));
  }

  /**
   * The first connection of this flow can come to nobody else than the server that listens on
   * `port`: not if other processes accept on the address, nor if the client dialled another address
   * than ours (translation, a balancer). That it dialled ours shows that much, unless we are told
   * otherwise: a balancer may leave the address alone.
   */
  areOurs(leg: Pick<Leg, 'localAddress'>, { targetAddress, targetPort }: Hello, port: number): boolean {
    if (this.#owner[kShared]) return false;
    if (this.known.has(`${targetAddress}:${targetPort}`)) return true;
    if (this.#owner[kOptions].addresses?.length === 0) return false;
    return targetPort === port && targetAddress === comparableAddress(leg.localAddress);
  }
}
