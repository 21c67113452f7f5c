/** Where the connections of a flow go: to what the application names, and the second to the address that it turns out to be. */
import type * as net from 'node:net';
import { type Address, asAddress } from './address.js';
import { Resolution } from './resolution.js';

export class Destination {
  /** Of a name. */
  readonly #resolution: Resolution | undefined;
  /** Undefined as long as it is not decided. */
  address: Address | undefined;

  /** `lookup`: the application's resolver, if it has one. */
  constructor(host: string, lookup: unknown) {
    this.address = asAddress(host);
    this.#resolution = this.address === undefined ? new Resolution(lookup) : undefined;
  }

  /** For an attempt to connect to the host: a name is resolved once. */
  get options(): { lookup?: net.LookupFunction } {
    const resolution = this.#resolution;
    return resolution === undefined || (this.address !== undefined && !resolution.known)
      ? {}
      : resolution.options;
  }

  /** The first connection has several addresses to choose from, and has not chosen. */
  get undecided(): boolean {
    return this.address === undefined && this.#resolution?.mayChoose === true;
  }

  /** net tells what the host resolves to. True: that decides it. */
  resolved(error: unknown, address: unknown): boolean {
    if (this.address !== undefined || this.undecided) return false;
    this.address = error ? undefined : asAddress(address);
    return this.address !== undefined;
  }

  /** The first connection is established, which decides it; of one that is reset already the system does not know any more where it went. */
  chosen(address: string | undefined): void {
    this.address ??= asAddress(address);
  }
}
