/**
 * A Map, in order of insertion, for what comes and goes with every flow. A Map of V8 moves to a new table every few insertions
 * and deletions, and the old one goes on referring to what it held; once one of them has reached the old generation, the collector of
 * the young takes what it refers to for alive (measured on a busy server: twice as much survived). Here tables hold cells that
 * are emptied when their key is deleted.
 */

interface Cell<V> {
  value: V | undefined;
}

/** Keys have to be primitive, since tables hold them, too. */
export class TidyMap<K extends string | number, V> {
  readonly #cells = new Map<K, Cell<V>>();

  get size(): number {
    return this.#cells.size;
  }

  get(key: K): V | undefined {
    return this.#cells.get(key)?.value;
  }

  set(key: K, value: V): void {
    const cell = this.#cells.get(key);
    if (cell === undefined) this.#cells.set(key, { value });
    else cell.value = value;
  }

  delete(key: K): void {
    const cell = this.#cells.get(key);
    if (cell === undefined) return;
    this.#cells.delete(key);
    cell.value = undefined;
  }

  *values(): Generator<V, void> {
    for (const cell of this.#cells.values()) yield cell.value as V;
  }

  clear(): void {
    for (const key of this.#cells.keys()) this.delete(key);
  }
}
