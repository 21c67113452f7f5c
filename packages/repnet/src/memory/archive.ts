/**
 * Bytes of a flow, kept for a connection that is still to come. Bounded over all flows of the
 * process; the archives of closed flows are the first to go.
 */

import { Buffer } from 'node:buffer';
import { defaults } from '../options.js';
import { TidyMap } from './tidy-map.js';

let held = 0;
/** Archives of flows that are closed, by serial number. */
const retired = new TidyMap<number, Archive>();
let serials = 0;

/** Bytes held at present, over all flows. */
export function archiveSize(): number {
  return held;
}

/** Bytes of a block that small writes share, at most. */
const BLOCK = 16 * 1024;

export class Archive {
  readonly #parts: Buffer[] = [];
  #size = 0;
  readonly #serial = serials++;
  /** The block whose beginning is the last part, if it has room. */
  #block: Buffer | undefined;

  /**
   * Returns whether there is room for `n` bytes, after dropping archives of closed flows for them.
   */
  static fits(n: number): boolean {
    while (held + n > defaults.archiveBytes) {
      const { oldest: serial } = retired;
      if (serial === undefined) return false;
      const oldest = retired.get(serial) as Archive;
      oldest.drop();
      oldest.onEvicted?.();
    }
    return true;
  }

  /**
   * Keeps a copy of `bytes`; the application may use its buffer again. Returns false for lack of
   * room, and drops everything: an archive is whole or empty. Small writes share blocks, so that
   * the memory held is at most about twice the bytes counted.
   */
  push(bytes: Buffer): boolean {
    if (!Archive.fits(bytes.length)) {
      this.drop();
      return false;
    }
    this.#append(bytes);
    this.#size += bytes.length;
    held += bytes.length;
    return true;
  }

  #append(bytes: Buffer): void {
    // Most flows write once.
    if (this.#parts.length === 0) {
      this.#parts.push(ownCopy(bytes));
      return;
    }
    const block = this.#block;
    const used = block === undefined ? 0 : (this.#parts.at(-1) as Buffer).length;
    if (block !== undefined && bytes.length <= block.length - used) {
      bytes.copy(block, used);
      this.#parts[this.#parts.length - 1] = block.subarray(0, used + bytes.length);
      return;
    }
    this.#block = Buffer.allocUnsafeSlow(Math.max(bytes.length, Math.min(this.#size, BLOCK)));
    bytes.copy(this.#block);
    this.#parts.push(this.#block.subarray(0, bytes.length));
  }

  get parts(): readonly Buffer[] {
    return this.#parts;
  }

  /** The flow is closed: the archive gives way to those of flows that are open. */
  retire(onEvicted: () => void): void {
    this.onEvicted = onEvicted;
    retired.set(this.#serial, this);
  }
  onEvicted: (() => void) | undefined;

  /** The archive is being sent, and no longer evicted. */
  reinstate(): void {
    retired.delete(this.#serial);
  }

  drop(): void {
    retired.delete(this.#serial);
    held -= this.#size;
    this.#size = 0;
    this.#block = undefined;
    this.#parts.length = 0;
  }
}

/**
 * Returns a copy in memory of its own: a few bytes that are kept must not keep the whole read, or
 * the pool, from which they come.
 */
export function ownCopy(bytes: Uint8Array): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length);
  copy.set(bytes);
  return copy;
}
