/**
 * Remembers keys for a while, and a small number with each, outside the garbage-collected heap: a
 * busy server remembers tens of thousands of pairs, and objects that live for seconds are what a
 * generational collector is worst at.
 *
 * A key is kept as 64 bits of a hash with a random seed. Two keys are taken for one with a
 * probability of 65,536 / 2^64 per question when the memory is full. Keys are kept in generations;
 * the oldest is dropped as a whole.
 */
import { randomFillSync } from 'node:crypto';

const seed = randomFillSync(new Int32Array(2));
const EMPTY = 0;
const LEAST_SLOTS = 256;

let high = 0;
let low = 0;

/**
 * Leaves the hash of `key` in `high` and `low`: two independent rounds of MurmurHash3's mixing over
 * its characters.
 */
function hash(key: string): void {
  let a = seed[0] as number;
  let b = seed[1] as number;
  for (let i = 0; i < key.length; i++) {
    const c = key.charCodeAt(i);
    a = Math.imul(a ^ c, 0xcc9e2d51);
    a = (a << 15) | (a >>> 17);
    b = Math.imul(b ^ c, 0x1b873593);
    b = (b << 13) | (b >>> 19);
    a = (a + b) | 0;
  }
  high = mix(a ^ key.length);
  low = mix(b ^ high) | 1; // never EMPTY
}

function mix(h: number): number {
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return h ^ (h >>> 16);
}

/** An open-addressing table, by linear probing, of at most three quarters of its slots. */
class Generation {
  size = 0;
  #slots: Int32Array;
  #values: Uint8Array;

  constructor(slots: number) {
    this.#slots = new Int32Array(2 * slots);
    this.#values = new Uint8Array(slots);
  }

  get slots(): number {
    return this.#values.length;
  }

  /** The slot of the hash in `high` and `low`, or the free one where it belongs. */
  #find(): number {
    const mask = this.#values.length - 1;
    let at = high & mask;
    while (this.#slots[2 * at] !== EMPTY && (this.#slots[2 * at] !== low || this.#slots[2 * at + 1] !== high))
      at = (at + 1) & mask;
    return at;
  }

  get(): number | undefined {
    const at = this.#find();
    return this.#slots[2 * at] === EMPTY ? undefined : this.#values[at];
  }

  set(value: number): void {
    if (4 * (this.size + 1) > 3 * this.#values.length) this.#grow();
    const at = this.#find();
    if (this.#slots[2 * at] === EMPTY) this.size++;
    this.#slots[2 * at] = low;
    this.#slots[2 * at + 1] = high;
    this.#values[at] = value;
  }

  #grow(): void {
    const [slots, values, keptHigh, keptLow] = [this.#slots, this.#values, high, low];
    this.#slots = new Int32Array(2 * slots.length);
    this.#values = new Uint8Array(2 * values.length);
    for (let i = 0; i < values.length; i++) {
      if (slots[2 * i] === EMPTY) continue;
      low = slots[2 * i] as number;
      high = slots[2 * i + 1] as number;
      const at = this.#find();
      this.#slots[2 * at] = low;
      this.#slots[2 * at + 1] = high;
      this.#values[at] = values[i] as number;
    }
    high = keptHigh;
    low = keptLow;
  }
}

export class PairMemory {
  /** The youngest first. */
  #generations: Generation[] = [];
  readonly #most: number;

  /**
   * Keeps a key until `age` has been called `generations` times; the youngest generation is filled.
   */
  constructor(generations: number) {
    this.#most = generations;
  }

  /** Keys held; one set again in a later generation counts twice. */
  get size(): number {
    let size = 0;
    for (const generation of this.#generations) size += generation.size;
    return size;
  }

  /** The value of a key, 0 to 255. */
  get(key: string): number | undefined {
    if (this.#generations.length === 0) return undefined;
    hash(key);
    for (const generation of this.#generations) {
      const value = generation.get();
      if (value !== undefined) return value;
    }
    return undefined;
  }

  set(key: string, value: number): void {
    if (this.#generations.length === 0) this.#generations.push(new Generation(LEAST_SLOTS));
    hash(key);
    this.#generations[0]?.set(value);
  }

  /** A new generation begins. */
  age(): void {
    const [youngest] = this.#generations;
    if (this.#generations.length === this.#most) this.#generations.pop();
    if (youngest === undefined || this.size === 0) {
      this.#generations.length = 0;
      return;
    }
    // As large as the last one had to be.
    const { size, slots } = youngest;
    this.#generations.unshift(new Generation(Math.max(LEAST_SLOTS, size < slots / 4 ? slots / 2 : slots)));
  }

  /** Drops the oldest generation. */
  forget(): void {
    this.#generations.pop();
  }

  clear(): void {
    this.#generations.length = 0;
  }
}
