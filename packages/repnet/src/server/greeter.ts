/**
 * Reads the hellos of connections. The number of connections that have not said theirs is bounded,
 * and so is their time.
 */
import { Leg, type LegSink, nobody } from '../flow/leg.js';
import type { Copy } from '../flow/machine.js';
import { ownCopy } from '../memory/archive.js';
import type { Handle } from '../net-internals.js';
import { comparableAddress, decodeHello, HELLO_BYTES, type Hello, Kind, looksLikeHello } from '../wire.js';

const TICKS = 4;

/**
 * A connection whose hello is awaited: a cell of a linked list, which it leaves without a trace
 * (memory/tidy-map.ts).
 */
class Silent implements LegSink {
  readonly greeter: Greeter;
  /** The tick up to which the hello is in time, and the tick at which the connection is dropped. */
  readonly due: number;
  until: number;
  leg: Leg;
  /** The part of the hello that has come. */
  bytes: Buffer | undefined;
  older: Silent | undefined;
  younger: Silent | undefined;

  constructor(greeter: Greeter, leg: Leg, bytes: Buffer | undefined, due: number, until: number) {
    this.greeter = greeter;
    this.leg = leg;
    this.bytes = bytes;
    this.due = due;
    this.until = until;
  }

  legData(_leg: Leg, chunk: Buffer): boolean {
    return this.greeter.heard(this, chunk);
  }
  legGone(): void {
    this.greeter.lost(this);
  }
  legFin(): void {}
  legLost(): void {
    this.greeter.lost(this);
  }
}

export class Greeter {
  #oldest: Silent | undefined;
  #youngest: Silent | undefined;
  #size = 0;
  readonly #most: number;
  readonly #timeout: number;
  /** Ticks that a connection is kept. */
  readonly #ticks: number;
  readonly #greeted: (leg: Leg, hello: Hello, rest: Buffer | undefined, late: boolean) => void;
  readonly #refused: (leg: Leg, bytes: Buffer | undefined) => void;
  readonly #copy: Copy;
  #timer: NodeJS.Timeout | undefined;
  #tick = 0;
  /** Called when the last connection has gone; no more come. */
  #drained: (() => void) | undefined;

  /**
   * A hello that takes longer than `timeout` is late. A connection is kept for `patience`, or until
   * its hello would be late.
   */
  constructor(
    options: { copy: Copy; most: number; timeout: number; patience?: number },
    greeted: (leg: Leg, hello: Hello, rest: Buffer | undefined, late: boolean) => void,
    /**
     * Called if no hello came, but `bytes`, or nothing in time. The callee has to close the
     * connection.
     */
    refused: (leg: Leg, bytes: Buffer | undefined) => void,
  ) {
    this.#copy = options.copy;
    this.#most = options.most;
    this.#timeout = options.timeout;
    this.#ticks = Math.max(TICKS, Math.ceil((TICKS * (options.patience ?? 0)) / options.timeout));
    this.#greeted = greeted;
    this.#refused = refused;
  }

  get size(): number {
    return this.#size;
  }

  /** Returns whether a connection from there has not said its hello yet. */
  awaits(address: string | undefined, port: number | undefined): boolean {
    for (let each = this.#oldest; each !== undefined; each = each.younger)
      if (
        each.leg.remotePort === port &&
        comparableAddress(each.leg.remoteAddress) === comparableAddress(address)
      )
        return true;
    return false;
  }

  accept(handle: Handle): Leg {
    const leg = new Leg(this.#copy, nobody, handle).unref();
    this.expect(leg);
    return leg;
  }

  /** Waits for the hello of a connection that has said `bytes` of it. */
  expect(leg: Leg, bytes?: Buffer): void {
    // The oldest one goes: a flood of silent connections must not keep the others out.
    if (this.#size >= this.#most && this.#oldest !== undefined) this.#drop(this.#oldest);
    const next = this.#tick + 1;
    leg.sink = this.#add(new Silent(this, leg, bytes, next + TICKS, next + this.#ticks));
    if (this.#timer === undefined) {
      this.#timer = setInterval(() => this.#advance(), Math.max(1, this.#timeout / TICKS));
      this.#timer.unref();
    }
  }

  #advance(): void {
    this.#tick++;
    while (this.#oldest !== undefined && this.#oldest.until <= this.#tick) this.#drop(this.#oldest);
    if (this.#size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
  }

  #add(silent: Silent): Silent {
    silent.older = this.#youngest;
    if (silent.older === undefined) this.#oldest = silent;
    else silent.older.younger = silent;
    this.#youngest = silent;
    this.#size++;
    return silent;
  }

  #remove(silent: Silent): void {
    const { older, younger } = silent;
    if (older === undefined) this.#oldest = younger;
    else older.younger = younger;
    if (younger === undefined) this.#youngest = older;
    else younger.older = older;
    silent.older = silent.younger = undefined;
    this.#size--;
  }

  #drop(silent: Silent, bytes = silent.bytes): void {
    const { leg } = silent;
    this.#remove(silent);
    leg.sink = nobody;
    this.#refused(leg, bytes);
    this.#left();
  }

  /**
   * Lets the accepted connections keep the process alive, for no longer than a new one would have.
   * Calls `drained` when the last has said hello or is gone. Returns false if there is none.
   */
  drain(drained: () => void): boolean {
    for (let each = this.#oldest; each !== undefined; each = each.younger) {
      each.leg.ref();
      each.until = Math.min(each.until, this.#tick + TICKS + 1);
    }
    if (this.#size > 0) this.#drained = drained;
    return this.#size > 0;
  }

  #left(): void {
    if (this.#size > 0) return;
    const drained = this.#drained;
    this.#drained = undefined;
    drained?.();
  }

  /** The connection has brought `chunk`. Returns false to stop reading, as `legData` does. */
  heard(silent: Silent, chunk: Buffer): boolean {
    const { leg } = silent;
    const bytes = silent.bytes === undefined ? chunk : Buffer.concat([silent.bytes, chunk]);
    if (!looksLikeHello(bytes)) {
      this.#drop(silent, bytes);
      return true;
    }
    if (bytes.length < HELLO_BYTES) {
      silent.bytes = ownCopy(bytes);
      return true;
    }
    const hello = decodeHello(bytes);
    if (hello === undefined) {
      this.#drop(silent, bytes);
      return true;
    }
    this.#remove(silent);
    leg.sink = nobody;
    // The application's own stream follows, with its own setting.
    if (hello.kind !== Kind.raw && hello.kind !== Kind.prove) leg.setNoDelay(true);
    const rest = bytes.length > HELLO_BYTES ? bytes.subarray(HELLO_BYTES) : undefined;
    this.#greeted(leg, hello, rest, silent.due <= this.#tick);
    this.#left();
    return !leg.stopped;
  }

  /** The connection is gone. */
  lost(silent: Silent): void {
    this.#remove(silent);
    this.#left();
  }
}
