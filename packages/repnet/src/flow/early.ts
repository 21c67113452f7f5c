/** Records beyond a hole in the stream, kept until the hole is filled. */
import { ownCopy } from '../memory/archive.js';

/** Bytes that a piece takes beside its own: what bounds them bounds pieces of one byte, too. */
const EARLY_COST = 256;

export interface Early {
  readonly offset: number;
  readonly bytes: Buffer;
  /** Number of the piece in order of arrival, which decides between two at one offset. */
  readonly order: number;
}

/**
 * A binary heap of pieces by offset. The peer chooses their order, size and number, so adding and
 * taking cost the logarithm of the number of pieces whatever it chooses.
 */
export class EarlyPieces {
  readonly #heap: Early[] = [];
  #order = 0;
  /** Memory of the pieces, counting `EARLY_COST` for each. */
  size = 0;

  /** The pieces, in no particular order. */
  get pieces(): readonly Early[] {
    return this.#heap;
  }

  add(offset: number, bytes: Buffer): void {
    // A small piece must not keep all that was read with it.
    const kept = 2 * bytes.length < bytes.buffer.byteLength ? ownCopy(bytes) : bytes;
    const piece = { offset, bytes: kept, order: this.#order++ };
    this.size += EARLY_COST + kept.length;
    const heap = this.#heap;
    let at = heap.push(piece) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBefore(piece, heap[parent] as Early)) break;
      heap[at] = heap[parent] as Early;
      at = parent;
    }
    heap[at] = piece;
  }

  /** Removes and returns the piece of the least offset if that is at most `offset`. */
  takeUpTo(offset: number): Early | undefined {
    const heap = this.#heap;
    const [least] = heap;
    if (least === undefined || least.offset > offset) return undefined;
    this.size -= EARLY_COST + least.bytes.length;
    const last = heap.pop() as Early;
    if (heap.length > 0) this.#sink(last);
    return least;
  }

  /** Moves `piece` from the root, which is free, to where it belongs. */
  #sink(piece: Early): void {
    const heap = this.#heap;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1] as Early, heap[child] as Early)) child++;
      if (!isBefore(heap[child] as Early, piece)) break;
      heap[at] = heap[child] as Early;
      at = child;
    }
    heap[at] = piece;
  }
}

function isBefore(a: Early, b: Early): boolean {
  return a.offset === b.offset ? a.order < b.order : a.offset < b.offset;
}
