/**
 * Pairing by token: the first connection begins with a hello, too, and what it carries counts for nothing before that is answered. A server that does not answer
 * may be busy, and is then waited for as any is; or it reads no hellos any more, so that the next flow asks before it says one.
 */
import { RepnetError } from '../errors.js';
import type { Flow } from '../flow/flow.js';
import { PRIMARY, REPLICA } from '../flow/machine.js';
import { patientTimeout } from '../flow/patience.js';
import { defaults } from '../options.js';
import { counters } from '../stats.js';
import { forgetPeer } from './peers.js';

/** For so many of its waits a server remembers a flow. */
const REMEMBERED = 4;

export class AnswerWait {
  /** The hello of the first connection is not answered yet. */
  awaited: boolean;
  /** The server has answered this flow's hello, on either connection. */
  understood = false;
  /** The second connection shows that the server does not pair by token, or not any more. */
  unlikely = false;
  /** Not answered within T. */
  #overdue = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(byToken: boolean) {
    this.awaited = byToken;
  }

  /** T is over. */
  expire(flow: Flow, key: string): void {
    if (!this.awaited) return;
    this.#overdue = true;
    if (flow.tx.copies[PRIMARY] === 'open') this.#miss(flow, key);
  }

  /** What is known of the flow has changed. */
  look(flow: Flow, key: string): void {
    if (this.#overdue) this.#miss(flow, key);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #miss(flow: Flow, key: string): void {
    if (!this.awaited || flow.closed) return;
    if (!this.understood) forgetPeer(key);
    clearTimeout(this.#timer);
    this.#timer = patientTimeout(() => {
      if (this.awaited && !flow.closed && flow.tx.copies[PRIMARY] === 'open') this.#giveUp(flow);
    }, REMEMBERED * defaults.waitTimeout);
  }

  /**
   * Nor is there one when the server may have forgotten the flow, whose wait is taken to be ours: a hello that came now could begin it
   * again. If nobody listens on the second port, or somebody else, the flow fails, since what was sent cannot be taken back.
   */
  #giveUp(flow: Flow): void {
    if (flow.joined) {
      if (flow.tx.copies[REPLICA] === 'open') flow.abandon(PRIMARY);
      return;
    }
    if (!this.unlikely) return;
    counters.foreignPeers++;
    flow.fail(
      new RepnetError(
        'ERR_REPNET_PROTOCOL',
        'The server does not pair connections by token, or not any more',
      ),
    );
  }
}
