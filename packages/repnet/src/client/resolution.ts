/**
 * Destinations of a flow's connections: the host is resolved once for every attempt, and the second
 * connection goes to the address that the first has chosen.
 */
import dns from 'node:dns';
import net from 'node:net';

declare const kAddress: unique symbol;
/**
 * An IP address. Second connections and questions go to an address, never to a name or to nothing:
 * `net` would take a missing host for localhost.
 */
export type Address = string & { readonly [kAddress]: true };

/**
 * Returns undefined if `host` is no IP address; the remote address of a destroyed socket is none.
 */
export function asAddress(host: unknown): Address | undefined {
  return typeof host === 'string' && net.isIP(host) !== 0 ? (host as Address) : undefined;
}

export type Lookup = (host: string, options: object, done: (...result: unknown[]) => void) => void;

/** The application's resolver, or Node's; undefined if it is invalid, of which net complains. */
export function resolverOf(own: unknown): Lookup | undefined {
  if (own != null && typeof own !== 'function') return undefined;
  return (own ?? dns.lookup) as Lookup;
}

export interface Answer {
  address?: unknown;
  family?: unknown;
}

/**
 * The addresses in a resolver's answer that net would try. Families take turns from that of the
 * first on (RFC 8305, section 4), as net orders its attempts. None if the answer is no list.
 */
export function inTurns(resolved: unknown): Address[] {
  if (!Array.isArray(resolved)) return [];
  const usable = ({ address, family }: Answer) =>
    family === 4 || family === 6 ? (asAddress(address) ?? []) : [];
  const all: Address[] = resolved.flatMap(usable);
  const six = (address: Address) => address.includes(':');
  const [first] = all;
  if (first === undefined) return [];
  const same = all.filter((address) => six(address) === six(first));
  const others = all.filter((address) => six(address) !== six(first));
  const turns: Address[] = [];
  while (same.length > 0 || others.length > 0) turns.push(...same.splice(0, 1), ...others.splice(0, 1));
  return turns;
}

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

  /** Returns whether the host has several addresses, of which net tries one after the other. */
  get mayChoose(): boolean {
    const addresses = this.#resolved?.[1];
    return Array.isArray(addresses) && addresses.length > 1;
  }

  /**
   * The addresses of the host, in the order of the attempts. Empty before they are known, or if net
   * asks for one only.
   */
  get addresses(): Address[] {
    return inTurns(this.#resolved?.[1]);
  }

  /** Options for an attempt. net complains of an invalid resolver. */
  get options(): { lookup?: net.LookupFunction } {
    const resolve = resolverOf(this.#own);
    if (resolve === undefined) return {};
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

/**
 * Returns options for net by which `host` is resolved as by `options`. If the answer has several
 * addresses, `race` is called with the answer and with the addresses, each once, in the order of
 * the attempts. If it returns true, net hears nothing of the answer.
 */
export function racing<T extends { host?: string | undefined; lookup?: net.LookupFunction | undefined }>(
  options: T,
  race: (answer: readonly Answer[], addresses: Address[]) => boolean,
): T {
  const resolve = asAddress(options.host) === undefined ? resolverOf(options.lookup) : undefined;
  if (resolve === undefined) return options;
  const lookup: Lookup = (host, how, done) =>
    resolve(host, how, (error, ...answer) => {
      // net asks for all addresses only if it would try several.
      const all = (how as { all?: boolean }).all === true && !error ? answer[0] : undefined;
      const addresses = [...new Set(inTurns(all))];
      if (addresses.length < 2 || !race(all as Answer[], addresses)) done(error, ...answer);
    });
  return { ...options, lookup: lookup as unknown as net.LookupFunction };
}

/** The host that the application dials, and the address that it turns out to be. */
export class Destination {
  /** Undefined if the host is an address. */
  readonly #resolution: Resolution | undefined;
  /** The address of the second connection; undefined until it is decided. */
  address: Address | undefined;

  /** `lookup`: the application's resolver, if it has one. */
  constructor(host: string, lookup: unknown) {
    this.address = asAddress(host);
    this.#resolution = this.address === undefined ? new Resolution(lookup) : undefined;
  }

  /** Options for an attempt to connect to the host; a name is resolved once. */
  get options(): { lookup?: net.LookupFunction } {
    const resolution = this.#resolution;
    return resolution === undefined || (this.address !== undefined && !resolution.known)
      ? {}
      : resolution.options;
  }

  /**
   * Returns whether the first connection has several addresses to choose from, and has not chosen.
   */
  get undecided(): boolean {
    return this.address === undefined && this.#resolution?.mayChoose === true;
  }

  /** `net` reports what the host resolves to. Returns whether that decides the address. */
  resolved(error: unknown, address: unknown): boolean {
    if (this.address !== undefined || this.undecided) return false;
    this.address = error ? undefined : asAddress(address);
    return this.address !== undefined;
  }

  /**
   * The first connection is established with `address`, which decides the second one's. Of a
   * connection that was reset the system no longer knows the address.
   */
  chosen(address: string | undefined): void {
    this.address ??= asAddress(address);
  }
}
