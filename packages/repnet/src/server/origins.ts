/** Which flows may begin with their second connection. */
import type { Leg } from '../flow/leg.js';
import { comparableAddress, type Hello } from '../wire.js';
import { comparableTarget } from './pair-keys.js';
import { type Internals, kOptions, kShared } from './server-internals.js';

export class Origins {
  readonly #owner: Internals;
  /** 'host:port' at which clients reach the server, by its own word. */
  readonly known: ReadonlySet<string>;

  constructor(owner: Internals) {
    this.#owner = owner;
    this.known = new Set(owner[kOptions].addresses?.map(comparableTarget));
  }

  /**
   * The first connection of this flow can come to nobody else than the server that listens on `port`: not if other processes accept on
   * the address, nor if the client dialled another address than ours (translation, a balancer). That it dialled ours shows that much, unless
   * we are told otherwise: a balancer may leave the address alone.
   */
  areOurs(leg: Pick<Leg, 'localAddress'>, { targetAddress, targetPort }: Hello, port: number): boolean {
    if (this.#owner[kShared]) return false;
    if (this.known.has(`${targetAddress}:${targetPort}`)) return true;
    if (this.#owner[kOptions].addresses?.length === 0) return false;
    return targetPort === port && targetAddress === comparableAddress(leg.localAddress);
  }
}
