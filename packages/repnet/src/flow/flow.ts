/**
 * A replicated flow: joins two connections to the one socket that the application sees. This file
 * is about the connections: which there are, and what follows when one is lost. sender.ts and
 * receiver.ts are the two directions; closing.ts closes the connections.
 */
import { isReset, RepnetError } from '../errors.js';
import type { Archive } from '../memory/archive.js';
import type { Handle } from '../net-internals.js';
import { channels, counters } from '../stats.js';
import type { Callback } from './callbacks.js';
import { Closing } from './closing.js';
import type { Leg, LegSink } from './leg.js';
import { type Copy, PRIMARY, REPLICA, type ReceiveMachine, type SendMachine } from './machine.js';
import { Receiver } from './receiver.js';
import type { FlowClient, FlowOptions, Outer } from './roles.js';
import { Sender } from './sender.js';
import { enlist, strike, type Unannounced } from './waits.js';

export interface FlowStart {
  /** The peer's kind of stream: a client's requests, or a server's replies (default). */
  receives?: 'request' | 'reply';
  /** A flow that began as a plain accepted connection: what passed before it was paired. */
  received?: number;
  sent?: number;
  archive?: Archive | undefined;
  /** The plain copy has been read to its end, and the application been told. */
  ended?: boolean;
  /** The plain copy has ended, and the application not been told. */
  fin?: boolean;
}

export class Flow implements LegSink, Unannounced {
  readonly outer: Outer;
  readonly options: FlowOptions;
  readonly legs: [Leg | undefined, Leg | undefined] = [undefined, undefined];
  readonly receives: 'request' | 'reply';
  readonly sender: Sender;
  readonly receiver: Receiver;
  client: FlowClient | undefined;
  peerThreshold: number;
  peerKnown = true;
  closed = false;
  broken = false;
  place = -1;
  #closing: Closing | undefined;
  /** The error of the last connection that failed. */
  lastError: NodeJS.ErrnoException | undefined;
  /**
   * The peer has joined the two connections, and will not take the first by itself for the flow.
   */
  joined = true;

  constructor(outer: Outer, options: FlowOptions, start: FlowStart = {}) {
    this.outer = outer;
    this.options = options;
    this.receives = start.receives ?? 'reply';
    this.peerThreshold = options.threshold;
    const { received = 0, sent, archive, ended = false, fin = false } = start;
    this.sender = new Sender(this, sent === undefined ? undefined : { offset: sent, archive });
    this.receiver = new Receiver(this, { received, ended, fin });
    enlist(this);
  }

  /** An established connection, the first if there are two. */
  get leg(): Leg | undefined {
    return this.legs[PRIMARY] ?? this.legs[REPLICA];
  }

  get tx(): SendMachine {
    return this.sender.tx;
  }

  get rx(): ReceiveMachine {
    return this.receiver.rx;
  }

  // ------------------------------------------------------------------ copies come and go

  /**
   * Opens a copy. `prefix` (a hello or an answer) goes out in one system call with what follows.
   * Returns whether the copy was sent all that the application had written before.
   */
  open(leg: Leg, prefix?: Buffer): boolean {
    this.legs[leg.copy] = leg;
    if (this.outer.unreferenced) leg.unref();
    if (!this.receiver.paused) leg.resumeReading();
    this.receiver.open(leg.copy);
    return this.sender.open(leg, prefix);
  }

  /** The first copy, which has carried the flow so far. */
  adopt(primary: Leg): void {
    this.receiver.paused = primary.stopped;
    this.legs[PRIMARY] = primary;
    this.rx.open(PRIMARY);
  }

  /** The connection that was expected will not come. */
  abandon(copy: Copy): void {
    this.client?.copyAbandoned(copy);
    const leg = this.legs[copy];
    this.legs[copy] = undefined;
    leg?.abort();
    this.#lose(copy);
  }

  /** The peer goes on, or has come to the end, without the first connection. */
  forsakeFirst(): void {
    const first = this.legs[PRIMARY];
    if (first === undefined) return;
    if (!this.closed) {
      if (this.legs[REPLICA] !== undefined) this.abandon(PRIMARY);
      return;
    }
    this.legs[PRIMARY] = undefined;
    first.abort();
    this.#closing?.on({ type: 'gone', failed: false });
  }

  #lose(copy: Copy, closed = false): void {
    this.receiver.lose(copy);
    this.sender.lose(copy, closed);
    this.poke();
  }

  /** Draws the conclusions from the loss of a pending copy, which the machines know already. */
  poke(): void {
    this.sender.trimArchive();
    this.sender.release();
    // The client reports why a flow never connects.
    if (this.closed || this.outer.connecting) return;
    this.receiver.checkEnd();
    // Nothing can be sent any more, and the stream from the peer is not over: one error.
    if (!this.closed && !this.receiver.ended && this.tx.state === 'ENDED') this.fail(this.lastError);
  }

  legLost(leg: Leg, error: NodeJS.ErrnoException | undefined): void {
    if (this.legs[leg.copy] !== leg) return;
    this.legs[leg.copy] = undefined;
    if (this.client?.copyLost(leg, error)) return;
    if (error !== undefined) this.lastError = error;
    if (this.closed) return this.#closing?.on({ type: 'gone', failed: true });
    counters.copiesFailed++;
    if (channels.failover.hasSubscribers)
      channels.failover.publish({
        socket: this.outer,
        copy: leg.copy === PRIMARY ? 'primary' : 'replica',
        error,
      });
    // A peer that goes away when it has sent all of its stream wants no more of ours.
    this.#lose(leg.copy, this.receiver.ended && isReset(error));
  }

  fail(error: Error | undefined): void {
    if (this.closed) return;
    this.broken = true;
    this.outer.destroy(
      error ??
        new RepnetError('ERR_REPNET_COPIES_FAILED', 'Both connections of the flow ended before the flow did'),
    );
  }

  // ------------------------------------------------------------------ the application's side

  /** Sends `bytes`; `done` when the first copy has taken them. */
  write(bytes: Buffer, done: Callback): void {
    this.sender.write(bytes, done);
  }

  /** The application has ended its stream. */
  end(done: Callback): void {
    this.sender.end(done);
  }

  /** The application has read: go on reading both copies. */
  resume(): void {
    this.receiver.resume();
  }

  // ------------------------------------------------------------------ the connections' side

  legData(leg: Leg, chunk: Buffer): boolean {
    return this.receiver.data(leg, chunk);
  }

  legFin(leg: Leg): void {
    const { copy } = leg;
    if (copy === REPLICA) {
      // The second connection is never half-closed: the peer has closed it.
      this.legs[copy] = undefined;
      leg.close();
      if (this.client?.copyLost(leg, undefined)) return;
      if (this.closed) return this.#closing?.on({ type: 'gone', failed: !this.rx.done[copy] });
      // Both streams are declared on it: it has done its part, whatever the first copy still
      // brings.
      if (this.rx.done[copy] && this.tx.total >= 0) return this.receiver.checkEnd();
      if (!this.rx.done[copy]) counters.copiesFailed++;
      this.#lose(copy, this.rx.done[copy]);
      return;
    }
    if (!this.closed) return this.receiver.fin();
    this.rx.fin();
    this.peerDone(leg);
  }

  // ------------------------------------------------------------------ closing

  get bytesRead(): number {
    return this.rx.delivered;
  }

  /** A write of the application's is not done yet. */
  get writing(): boolean {
    return this.sender.writing;
  }

  /** Bytes are given to the system, or are about to be, and are not taken yet. */
  get underWay(): boolean {
    return this.sender.underWay;
  }

  /** Bytes given to the system and not yet taken. */
  get backlog(): number {
    return (this.legs[PRIMARY]?.backlog ?? 0) + (this.legs[REPLICA]?.backlog ?? 0);
  }

  /**
   * The application's socket is destroyed. `decided` is called when the peer is informed, which may
   * be a moment later, with whether the flow is reset.
   */
  close(reset: boolean, decided?: (reset: boolean) => void): void {
    if (this.closed) return;
    this.closed = true;
    this.receiver.close();
    this.#closing = new Closing(this, (decision) => {
      strike(this);
      decided?.(decision);
    });
    // An orderly end would hide from the peer that bytes are lost.
    this.#closing.on({ type: 'close', reset: reset || this.broken });
  }

  exit(): void {
    if (this.#closing === undefined) this.close(false);
    else this.#closing.on({ type: 'exit' });
  }

  /** The flow is closed, and `leg` has brought the peer's stream to its end. */
  peerDone(leg: Leg | undefined): void {
    if (leg !== undefined) this.#closing?.on({ type: 'ended', copy: leg.copy });
  }

  /**
   * Returns a handle for options of the socket; a connection that is not established yet gets them
   * when it is.
   */
  optionsHandle(): Partial<Handle> {
    const every = (work: (leg: Leg) => number): number => {
      let status = 0;
      for (const leg of this.legs) if (leg !== undefined) status ||= work(leg);
      return status;
    };
    return {
      // Records never wait for acknowledgements.
      setNoDelay: (on) => every((leg) => (leg.copy === REPLICA ? 0 : leg.setNoDelay(on))),
      setKeepAlive: (...how) => every((leg) => leg.setKeepAlive(...how)),
      setTypeOfService: (value) => every((leg) => leg.setTypeOfService(value)),
    };
  }

  /**
   * Gives away the one connection of the flow, which is over then. Returns undefined unless that is
   * a plain stream whose bytes the application has all read, and the system all taken.
   */
  release(): Handle | undefined {
    const { legs, tx, rx } = this;
    const leg = legs[PRIMARY];
    if (leg === undefined || legs[REPLICA] !== undefined || this.closed) return undefined;
    if (tx.copies[REPLICA] !== 'gone' || tx.state !== 'CHOSEN' || tx.total >= 0 || leg.backlog > 0)
      return undefined;
    if (rx.plain !== rx.delivered || this.receiver.ended) return undefined;
    this.closed = true;
    strike(this);
    this.receiver.close();
    this.sender.close();
    legs[PRIMARY] = undefined;
    return leg.release();
  }
}
