/**
 * What has been written to a flow whose other connection has not come, kept for that connection. Bounded in bytes over all
 * flows of the process; the archives of flows that are closed already are the first to go.
 */
import { defaults } from '../options.js';

let held = 0;
const retired = new Set<Archive>();

/** Bytes held at present, over all flows. */
export function archiveSize(): number {
  return held;
}

export class Archive {
  #parts: Buffer[] = [];
  #size = 0;

  /**
   * Keeps a copy of `bytes`: the application may use its buffer again. False: there is no room, and what was kept is
   * dropped: an archive is whole or it is nothing.
   */
  push(bytes: Buffer): boolean {
    while (held + bytes.length > defaults.archiveBytes) {
      const [oldest] = retired;
      if (oldest === undefined) {
        this.drop();
        return false;
      }
      oldest.drop();
      oldest.onEvicted?.();
    }
    this.#parts.push(Buffer.from(bytes));
    this.#size += bytes.length;
    held += bytes.length;
    return true;
  }

  get parts(): readonly Buffer[] {
    return this.#parts;
  }

  /** The flow is closed: the archive gives way to those of flows that are open. */
  retire(onEvicted: () => void): void {
    this.onEvicted = onEvicted;
    retired.add(this);
  }
  onEvicted: (() => void) | undefined;

  /** No longer to be evicted: it is being sent. */
  reinstate(): void {
    retired.delete(this);
  }

  drop(): void {
    retired.delete(this);
    held -= this.#size;
    this.#size = 0;
    this.#parts = [];
  }
}
