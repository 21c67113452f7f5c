/** Reads the hello of a connection. Connections that say none are bounded in number and time. */

import { Leg, type LegSink } from '../flow/leg.js';
import type { Copy } from '../flow/machine.js';
import { TidyMap } from '../memory/tidy-map.js';
import type { Handle } from '../net-internals.js';
import { comparableAddress, decodeHello, HELLO_BYTES, type Hello, Kind, looksLikeHello } from '../wire.js';

const TICKS = 4;

interface Silent {
  leg: Leg;
  /** What it has said of its hello. */
  bytes: Buffer | undefined;
  until: number;
}

export class Greeter implements LegSink {
  readonly #silent = new TidyMap<number, Silent>();
  readonly #most: number;
  readonly #timeout: number;
  readonly #greeted: (leg: Leg, hello: Hello, rest: Buffer | undefined) => void;
  readonly #refused: (leg: Leg, bytes: Buffer | undefined) => void;
  readonly #copy: Copy;
  #timer: NodeJS.Timeout | undefined;
  #tick = 0;
  /** No more come: to be told when there are none left. */
  #drained: (() => void) | undefined;

  constructor(
    options: { copy: Copy; most: number; timeout: number },
    greeted: (leg: Leg, hello: Hello, rest: Buffer | undefined) => void,
    /** No hello came: `bytes` did, if any, or the time was up. The connection is the callee's to close. */
    refused: (leg: Leg, bytes: Buffer | undefined) => void,
  ) {
    this.#copy = options.copy;
    this.#most = options.most;
    this.#timeout = options.timeout;
    this.#greeted = greeted;
    this.#refused = refused;
  }

  get size(): number {
    return this.#silent.size;
  }

  /** A connection from there has not said its hello yet. */
  awaits(address: string | undefined, port: number | undefined): boolean {
    for (const { leg } of this.#silent.values())
      if (leg.remotePort === port && comparableAddress(leg.remoteAddress) === comparableAddress(address))
        return true;
    return false;
  }

  accept(handle: Handle): Leg {
    const leg = new Leg(this.#copy, this, handle).unref();
    this.expect(leg);
    return leg;
  }

  /** Waits for the hello of a connection that has said `bytes` of it. */
  expect(leg: Leg, bytes?: Buffer): void {
    leg.sink = this;
    if (this.#silent.size >= this.#most) {
      // The oldest has had its chance; a flood of silent connections must not keep the others out.
      const oldest = this.#silent.values().next().value as Silent;
      this.#drop(oldest.leg);
    }
    this.#silent.set(leg.serial, { leg, bytes, until: this.#tick + TICKS + 1 });
    if (this.#timer === undefined) {
      this.#timer = setInterval(() => this.#advance(), Math.max(1, this.#timeout / TICKS));
      this.#timer.unref();
    }
  }

  #advance(): void {
    this.#tick++;
    for (const { leg, until } of this.#silent.values()) {
      if (until > this.#tick) break;
      this.#drop(leg);
    }
    if (this.#silent.size === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
    }
  }

  #drop(leg: Leg, bytes?: Buffer): void {
    const state = this.#silent.get(leg.serial);
    this.#silent.delete(leg.serial);
    this.#refused(leg, bytes ?? state?.bytes);
    this.#left();
  }

  /** What has been accepted keeps its time, and the process; `drained` when the last has spoken or is gone. False: there is none. */
  drain(drained: () => void): boolean {
    for (const { leg } of this.#silent.values()) leg.ref();
    if (this.#silent.size > 0) this.#drained = drained;
    return this.#silent.size > 0;
  }

  #left(): void {
    if (this.#silent.size > 0) return;
    const drained = this.#drained;
    this.#drained = undefined;
    drained?.();
  }

  legData(leg: Leg, chunk: Buffer): boolean {
    const state = this.#silent.get(leg.serial);
    if (state === undefined) return true;
    const bytes = state.bytes === undefined ? chunk : Buffer.concat([state.bytes, chunk]);
    if (!looksLikeHello(bytes)) {
      this.#drop(leg, bytes);
      return true;
    }
    if (bytes.length < HELLO_BYTES) {
      state.bytes = bytes;
      return true;
    }
    const hello = decodeHello(bytes);
    if (hello === undefined) {
      this.#drop(leg, bytes);
      return true;
    }
    this.#silent.delete(leg.serial);
    // The application's own stream follows, with its own setting.
    if (hello.kind !== Kind.raw) leg.setNoDelay(true);
    this.#greeted(leg, hello, bytes.length > HELLO_BYTES ? bytes.subarray(HELLO_BYTES) : undefined);
    this.#left();
    return !leg.stopped;
  }

  legGone(leg: Leg): void {
    this.legLost(leg);
  }
  legFin(): void {}
  legLost(leg: Leg): void {
    this.#silent.delete(leg.serial);
    this.#left();
  }
}
