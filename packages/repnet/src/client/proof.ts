/**
 * RepSYN: a connection to the second port on which the server has to prove, before the connection
 * may win, that it is the server on the first. It answers with its life, which it has reported
 * beside an earlier flow that it had accepted on the first port.
 */
import { Buffer } from 'node:buffer';
import { Leg, type LegSink } from '../flow/leg.js';
import { REPLICA } from '../flow/machine.js';
import type { Handle } from '../net-internals.js';
import type { Connection, DialTarget } from '../socket-internals.js';
import { ANSWER_BYTES, type Answer, decodeAnswer, Kind } from '../wire.js';
import { raceHello } from './hello.js';

export class Proof implements LegSink, Connection {
  readonly address: string;
  readonly #leg: Leg;
  readonly #target: DialTarget;
  readonly #isKnown: (answer: Answer) => boolean;
  readonly #over: (proof: Proof, proved: boolean) => void;
  #seen = Buffer.alloc(0);
  #done = false;

  /** Asks on a connection that is established. `over` is called once, unless `abandon` is. */
  constructor(
    handle: Handle,
    address: string,
    target: DialTarget,
    isKnown: (answer: Answer) => boolean,
    over: (proof: Proof, proved: boolean) => void,
  ) {
    this.address = address;
    this.#target = target;
    this.#isKnown = isKnown;
    this.#over = over;
    this.#leg = new Leg(REPLICA, this, handle);
  }

  ask(): void {
    this.#leg.setNoDelay(true);
    this.#leg.send([raceHello(this.#target, Kind.prove)], (error) => {
      if (error) this.#end(false);
    });
  }

  legData(_leg: Leg, chunk: Buffer): boolean {
    this.#seen = Buffer.concat([this.#seen, chunk]);
    const foreign = this.#seen[0] !== 0x9e || this.#seen.length > ANSWER_BYTES;
    if (!foreign && this.#seen.length < ANSWER_BYTES) return true;
    const answer = foreign ? undefined : decodeAnswer(this.#seen);
    const ours = answer?.refusal === 0 && answer.port === this.#target.net.port;
    this.#end(ours && this.#isKnown(answer));
    return false;
  }

  legFin(): void {
    this.#end(false);
  }

  legLost(): void {
    this.#end(false);
  }

  #end(proved: boolean): void {
    if (this.#done) return;
    this.#done = true;
    // The consequences follow after the system's call.
    queueMicrotask(() => this.#over(this, proved));
  }

  /** Returns the handle of the connection, which is plain from now on. */
  release(): Handle {
    return this.#leg.release();
  }

  abandon(): void {
    this.#done = true;
    if (!this.#leg.lost) this.#leg.abort();
  }

  ref(): void {
    this.#leg.ref();
  }
  unref(): void {
    this.#leg.unref();
  }
}
