/**
 * Closes a flow once the application's socket is destroyed: performs the actions of
 * closing-machine.ts, and reports the events that follow.
 */
import { Archive } from '../memory/archive.js';
import { Record as Control, controlRecord } from '../wire.js';
import {
  type ClosingAction,
  type ClosingEvent,
  type ClosingFacts,
  ClosingMachine,
} from './closing-machine.js';
import type { Flow } from './flow.js';
import type { Leg } from './leg.js';
import { type Copy, PRIMARY, REPLICA } from './machine.js';
import { endLinger, exiting, type Linger, startLinger, wordTimeout } from './waits.js';

/**
 * Answers the machine's questions when it asks: an event needs few of them, and the machine performs
 * nothing meanwhile.
 */
class FlowFacts implements ClosingFacts {
  readonly #flow: Flow;

  constructor(flow: Flow) {
    this.#flow = flow;
  }

  get isClient(): boolean {
    return this.#flow.client !== undefined;
  }

  get exiting(): boolean {
    return exiting;
  }

  get destroyed(): boolean {
    return this.#flow.outer.destroyed;
  }

  get legs(): [boolean, boolean] {
    const { [PRIMARY]: first, [REPLICA]: second } = this.#flow.legs;
    return [first !== undefined, second !== undefined];
  }

  get copies(): ClosingFacts['copies'] {
    return this.#flow.tx.copies;
  }

  get done(): ClosingFacts['done'] {
    return this.#flow.rx.done;
  }

  get joined(): boolean {
    return this.#flow.joined;
  }

  get readAll(): boolean {
    return this.#flow.receiver.ended;
  }

  get wroteAll(): boolean {
    return this.#flow.tx.total >= 0;
  }

  get sentAll(): boolean {
    return this.#flow.sender.isSent;
  }

  get archived(): boolean {
    return this.#flow.tx.archived;
  }

  get turned(): boolean {
    return this.#flow.sender.turned;
  }

  get unheard(): boolean {
    return this.#flow.legs[REPLICA]?.unheard === true;
  }

  get firstHasAll(): boolean {
    const { legs, tx } = this.#flow;
    return legs[PRIMARY]?.backlog === 0 && tx.copies[PRIMARY] === 'open' && tx.hasAll(PRIMARY);
  }

  get inOrder(): boolean {
    return this.#flow.options.loser === 'fin';
  }
}

export class Closing {
  readonly #flow: Flow;
  readonly #machine = new ClosingMachine();
  readonly #facts: FlowFacts;
  readonly #decided: (reset: boolean) => void;
  /** An event is being processed. */
  #busy = false;
  /** Events that occur meanwhile. */
  #queue: ClosingEvent[] | undefined;
  #linger: Linger | undefined;
  /** Watches a second connection that does not move. */
  #watch: NodeJS.Timeout | undefined;
  /** Bytes for the second connection, should the server still answer on it. */
  #forSecond: Archive | undefined;
  /** The first connection, which carries nothing, as the peer may not know yet. */
  #aside: Leg | undefined;

  /** `decided` is called when the peer is informed, with whether the flow is reset. */
  constructor(flow: Flow, decided: (reset: boolean) => void) {
    this.#flow = flow;
    this.#facts = new FlowFacts(flow);
    this.#decided = decided;
  }

  /** Processes an event, after those that it interrupts. */
  on(event: ClosingEvent): void {
    if (this.#busy) {
      this.#queue ??= [];
      this.#queue.push(event);
      return;
    }
    this.#busy = true;
    try {
      let next: ClosingEvent | undefined = event;
      for (; next !== undefined; next = this.#queue?.shift())
        for (const action of this.#machine.on(next, this.#facts)) this.#perform(action);
    } finally {
      this.#busy = false;
      this.#queue = undefined;
    }
  }

  /** Has no closures of its own: for these the engine would allocate a context at every call. */
  #perform(action: ClosingAction): void {
    const { client, legs, sender, tx } = this.#flow;
    switch (action.do) {
      case 'abandonDial':
        return client?.copyAbandoned(action.copy);
      case 'keepForFirst':
        return client?.keepForFirst(sender.takeArchive() ?? new Archive());
      case 'keepForSecond':
        this.#forSecond = sender.takeArchive();
        return;
      case 'stopSending':
        return sender.close();
      case 'drain':
        return this.#drain();
      case 'decide':
        return this.#decided(action.reset);
      case 'say':
        return this.#say(action.record);
      case 'setAside':
        return this.#setAside();
      case 'abort':
        return this.#take(action.copy)?.abort();
      case 'close':
        return this.#take(action.copy)?.close();
      case 'finish':
        return this.#finish(action.fin);
      case 'readToEnd':
        return this.#read(legs[action.copy]);
      case 'awaitWritten':
        return this.#awaitWritten();
      case 'keepSecond': {
        const second = this.#take(REPLICA);
        if (second !== undefined) client?.keepSecond(second, this.#forSecond, tx.offset);
        this.#forSecond = undefined;
        return;
      }
      case 'dropForSecond':
        return this.#forSecond?.drop();
      case 'linger':
        return this.#startLinger(action.word, action.carrying);
      case 'watchSecond':
        return this.#watchSecond();
      case 'settle':
        return this.#settle(action.inOrder);
    }
  }

  #awaitWritten(): void {
    this.#flow.legs[PRIMARY]?.whenFinished(() => this.on({ type: 'written' }));
  }

  #startLinger(word: boolean, carrying: boolean): void {
    const { pairTimeout } = this.#flow.options;
    const impatient = word ? wordTimeout(pairTimeout) : pairTimeout;
    this.#linger = startLinger(() => this.on({ type: 'timeUp' }), impatient, carrying);
  }

  /** Returns the connection, which leaves the flow. */
  #take(copy: Copy): Leg | undefined {
    const leg = this.#flow.legs[copy];
    this.#flow.legs[copy] = undefined;
    return leg;
  }

  /**
   * Only reading finds bytes that the application was not given; the system's come in the next turn
   * of the event loop.
   */
  #drain(): void {
    const { legs, receiver } = this.#flow;
    for (const leg of legs) leg?.resumeReading();
    const drained = () => this.on({ type: 'drained', unread: receiver.leftUnread });
    if (receiver.leftUnread) drained();
    else setImmediate(() => setImmediate(drained));
  }

  #say(record: 'end' | 'alone' | 'reset'): void {
    const { legs, sender, tx } = this.#flow;
    const { [REPLICA]: second } = legs;
    const offset = record === 'reset' ? 0 : tx.offset;
    if (second !== undefined) sender.post(second, [controlRecord(Control[record], offset)], undefined);
  }

  #setAside(): void {
    const first = this.#take(PRIMARY);
    if (first === undefined) return;
    first.sink = undefined;
    this.#aside = first.unref();
  }

  /** Reads on, without keeping the process alive. */
  #read(leg: Leg | undefined): void {
    leg?.unref();
    leg?.resumeReading();
  }

  #finish(fin: boolean): void {
    const { [REPLICA]: second } = this.#flow.legs;
    this.#read(second);
    if (fin) second?.finish(() => {});
  }

  /** Reports a second connection that does not move for `pairTimeout`. */
  #watchSecond(before = Number.POSITIVE_INFINITY): void {
    const { [REPLICA]: second } = this.#flow.legs;
    if (second === undefined || second.backlog === 0) return;
    this.#watch = setTimeout(() => {
      if (second.unsent === 0 || this.#flow.legs[REPLICA] !== second) return;
      if (second.unsent < before) this.#watchSecond(second.unsent);
      else this.on({ type: 'stuck' });
    }, this.#flow.options.pairTimeout).unref();
  }

  #settle(inOrder: boolean): void {
    if (inOrder) this.#aside?.close();
    else this.#aside?.abort();
    this.#aside = undefined;
    clearTimeout(this.#watch);
    if (this.#linger !== undefined) endLinger(this.#linger);
    this.#linger = undefined;
  }
}
