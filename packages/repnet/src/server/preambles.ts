/**
 * The first port of a server that pairs by token: every connection may begin with a hello, and one whose hello is under way
 * must not be taken for another client's. Which bytes are the application's is decided here, before any limit or switch.
 *
 * A connection that begins otherwise is plain, from its first byte. One that says nothing may be a plain client's, of a
 * protocol in which the server speaks first: it is handed on after a moment, unless hellos come from its host; then the time
 * is that of the waiting list, beyond which no client of this library waits for an answer. Also after that, bytes that begin
 * as a hello are none of the application's (server/late-hello.ts).
 */

import type { Leg } from '../flow/leg.js';
import { PRIMARY } from '../flow/machine.js';
import type { Handle } from '../net-internals.js';
import { defaults } from '../options.js';
import { HELLO_BYTES, type Hello, isLaterHello, looksLikeHello } from '../wire.js';
import { Greeter } from './greeter.js';
import { saysHello } from './hosts.js';

/** Silent connections at most, of hosts that say hello as of others. */
const MOST_SILENT = 1024;
/** Milliseconds after which a silent client is taken for a plain one, if nothing says otherwise. */
const SILENCE = 200;

export class Preambles {
  readonly #new: Greeter;
  /** Those that have begun a hello, or whose hello is to be expected. */
  readonly #expected: Greeter;

  constructor(on: {
    greeted(leg: Leg, hello: Hello, rest: Buffer | undefined): void;
    /** A plain client's connection; undefined: it has said nothing so far. */
    plain(leg: Leg, bytes: Buffer | undefined): void;
    /** It has begun a hello, which is broken or never came to an end. */
    broken(leg: Leg): void;
    /** It has begun a hello of a later form. */
    later(leg: Leg): void;
  }) {
    const options = { copy: PRIMARY, most: MOST_SILENT } as const;
    const told = (leg: Leg, bytes: Buffer | undefined) => {
      if (!begun(bytes)) on.plain(leg, bytes);
      else if (isLaterHello(bytes)) on.later(leg);
      else on.broken(leg);
    };
    this.#expected = new Greeter({ ...options, timeout: defaults.waitTimeout }, on.greeted, (leg, bytes) =>
      told(leg, bytes),
    );
    this.#new = new Greeter({ ...options, timeout: SILENCE }, on.greeted, (leg, bytes) => {
      if (begun(bytes) ? bytes.length < HELLO_BYTES : bytes === undefined && saysHello(leg.remoteAddress))
        this.#expected.expect(leg, bytes);
      else told(leg, bytes);
    });
  }

  accept(connection: Handle): void {
    this.#new.accept(connection);
  }

  /** `drained` when all that has been accepted is known for what it is, or is gone. False: there is nothing. */
  drain(drained: () => void): boolean {
    // Those that are new may come to be expected.
    const then = () => this.#expected.drain(drained) || drained();
    return this.#new.drain(then) || this.#expected.drain(drained);
  }
}

function begun(bytes: Buffer | undefined): bytes is Buffer {
  return bytes !== undefined && looksLikeHello(bytes);
}
