/** What a flow's host resolves to: asked once, for every attempt to connect. */
import dns from 'node:dns';
import type * as net from 'node:net';
import { type Address, asAddress } from './address.js';

type Lookup = (host: string, options: object, done: (...result: unknown[]) => void) => void;

export class Resolution {
  readonly #own: unknown;
  #resolved: unknown[] | undefined;

  /** `own`: the application's resolver, if it has one. */
  constructor(own: unknown) {
    this.#own = own;
  }

  get known(): boolean {
    return this.#resolved !== undefined;
  }

  /** The host has several addresses, of which net tries one after the other. */
  get mayChoose(): boolean {
    const addresses = this.#resolved?.[1];
    return Array.isArray(addresses) && addresses.length > 1;
  }

  /**
   * The addresses of the host, families taking turns from that of the first on (RFC 8305, section 4), as net orders its attempts. None
   * before they are known, or where net asks for one only.
   */
  get addresses(): Address[] {
    const resolved = this.#resolved?.[1];
    if (!Array.isArray(resolved)) return [];
    const all = resolved.flatMap(({ address }: { address?: unknown }) => asAddress(address) ?? []);
    const six = (address: Address) => address.includes(':');
    const [first] = all;
    if (first === undefined) return [];
    const same = all.filter((address) => six(address) === six(first));
    const others = all.filter((address) => six(address) !== six(first));
    const turns: Address[] = [];
    while (same.length > 0 || others.length > 0) turns.push(...same.splice(0, 1), ...others.splice(0, 1));
    return turns;
  }

  /** For an attempt's options. An invalid resolver is left for net to complain of. */
  get options(): { lookup?: net.LookupFunction } {
    const own = this.#own;
    if (own != null && typeof own !== 'function') return {};
    const resolve = (own ?? dns.lookup) as Lookup;
    const lookup: Lookup = (host, options, done) => {
      const resolved = this.#resolved;
      if (resolved !== undefined) return process.nextTick(done, ...resolved);
      resolve(host, options, (...result) => {
        this.#resolved = result;
        done(...result);
      });
    };
    return { lookup: lookup as unknown as net.LookupFunction };
  }
}
