/** Answers to second connections, and reports of connections that are refused. */
import { randomBytes } from 'node:crypto';
import type { Leg } from '../flow/leg.js';
import type { Replication } from '../options.js';
import type { Inner } from '../socket-internals.js';
import { channels, counters } from '../stats.js';
import { AnswerFlag, encodeAnswer, type Hello, Refusal, type RefusalReason, VERSION } from '../wire.js';
import { type Internals, kShared } from './server-internals.js';

export class Answers {
  readonly #owner: Internals;
  readonly #replication: Replication;
  /** First ports under which clients may know the server, and the one that it listens on. */
  readonly #ports = new Set<number>();
  #port = 0;
  /** The listener's life: differs from that of every other listener, before and after it. */
  readonly #life = randomBytes(6);

  /** `known`: 'host:port' at which clients reach the server. */
  constructor(owner: Internals, replication: Replication, known: Iterable<string>) {
    this.#owner = owner;
    this.#replication = replication;
    for (const address of known) this.#ports.add(Number(address.slice(address.lastIndexOf(':') + 1)));
  }

  /** The server listens on `port`. */
  listensOn(port: number): void {
    this.#port = port;
    this.#ports.add(port);
  }

  /** Returns whether clients may know the server by that first port. */
  isOurs(port: number): boolean {
    return this.#ports.has(port);
  }

  /** Returns an answer. `hello` is undefined if its form is not known here. */
  answer(reason: RefusalReason, hello: Hello | undefined, tellsLife = false, flags = 0): Buffer {
    const { targetPort = this.#port, version = VERSION } = hello ?? {};
    return encodeAnswer({
      refusal: Refusal[reason],
      flags: flags | (this.#owner[kShared] ? AnswerFlag.shared : 0),
      threshold: this.#replication.threshold,
      port: this.#ports.has(targetPort) ? targetPort : this.#port,
      version: Math.min(version, VERSION),
      life: tellsLife ? this.#life : undefined,
    });
  }

  /** Sends the answer, and closes the connection. */
  only(leg: Leg, reason: RefusalReason, hello: Hello | undefined, tellsLife = false): void {
    leg.send([this.answer(reason, hello, tellsLife)], () => {});
    leg.close();
  }

  refuse(leg: Leg, reason: RefusalReason, hello: Hello | undefined): void {
    this.count(leg, reason);
    if (!leg.lost) this.only(leg, reason, hello);
  }

  /** Resets a connection to which no answer is due, or that would understand none. */
  drop(leg: Leg, reason: RefusalReason | 'hello' = 'hello'): void {
    this.count(leg, reason);
    leg.abort();
  }

  count({ remoteAddress, remotePort }: Leg | Inner, reason: string): void {
    counters.refused++;
    if (channels.refused.hasSubscribers) channels.refused.publish({ reason, remoteAddress, remotePort });
  }
}
