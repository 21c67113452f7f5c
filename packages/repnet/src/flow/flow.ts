/**
 * One replicated flow: joins the two connections of a flow to the one socket that the application sees. What is sent and what
 * received is up to sender.ts and receiver.ts; this file is about the connections: which there are, what becomes of the flow
 * when one is lost, and how they are closed.
 */
import { isReset, RepnetError } from '../errors.js';
import { Archive } from '../memory/archive.js';
import type { Handle } from '../net-internals.js';
import { channels, counters } from '../stats.js';
import { Record as Control, controlRecord } from '../wire.js';
import type { Callback } from './callbacks.js';
import type { Leg, LegSink } from './leg.js';
import { endLinger, type Linger, startLinger } from './linger.js';
import { COPIES, type Copy, PRIMARY, REPLICA, type ReceiveMachine, type SendMachine } from './machine.js';
import { Receiver } from './receiver.js';
import { Sender } from './sender.js';

/** What a flow needs of the application's socket. */
export interface Outer {
  readonly connecting: boolean;
  readonly destroyed: boolean;
  /** The application does not want the flow to keep the process alive. */
  readonly unreferenced: boolean;
  /** Hands bytes (null: the end) to the application; false: it is behind. */
  deliver(chunk: Buffer | null): boolean;
  destroy(error?: Error): unknown;
  /** Any activity restarts the idle timer of `setTimeout`. */
  touch(): void;
}

export interface FlowOptions {
  threshold: number;
  lull: number;
  copyDelay: number;
  pairTimeout: number;
  loser: 'rst' | 'fin' | undefined;
}

/** Client side: who dials the connections of a flow. */
export interface FlowClient {
  /** A copy was lost; true: that is dealt with. */
  copyLost(leg: Leg, error: NodeJS.ErrnoException | undefined): boolean;
  /** A copy that may still be connecting is not wanted any more. */
  copyAbandoned(copy: Copy): void;
  /** The flow is closed, and the first connection still to come: `archive` is all that was written. */
  keepForFirst(archive: Archive): void;
  /**
   * The flow is closed, and the server has not answered on the second connection, `leg`. `total`
   * bytes were written, which `archive` has if it is there.
   */
  keepSecond(leg: Leg, archive: Archive | undefined, total: number): void;
  /** `bytes` that should be an answer have come. False: no more is wanted of the copy. */
  answered(leg: Leg, bytes: Buffer): boolean;
  /** The first bytes of the peer are there. */
  firstBytes(): void;
}

export interface FlowStart {
  /** What the peer sends: a client's requests, or a server's replies (default). */
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

/**
 * The flows of this process of whose end the peers are still to be told. In a Set each would cost a new table every few flows; this
 * grows to the most there were.
 */
const open: Flow[] = [];

/**
 * A process that exits leaves the peer of a plain connection an orderly end of what it had written. On a connection of records that
 * takes a word, which can still be said.
 */
let exiting = false;
process.on('exit', () => {
  exiting = true;
  for (const flow of [...open]) flow.exit();
});

export class Flow implements LegSink {
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
  /** Where it is among those that are open; -1: it is not. */
  #place: number;
  /** Closed, and the peer is not told how: what it has sent is still being looked for. */
  #looking = false;
  #parted: ((reset: boolean) => void) | undefined;
  /** What the last connection that failed failed of. */
  lastError: NodeJS.ErrnoException | undefined;
  #linger: Linger | undefined;
  /** Closed, and what the second connection does not take the first has. */
  #stuck: NodeJS.Timeout | undefined;
  /** The peer has joined the two connections: it will not take the first, by itself, for the flow. */
  joined = true;
  /** Closed; the first connection is still to come, and carries all that was written if the second fails. */
  #firstHasRest = false;
  /** Bytes of a closed flow for its second connection, should the server answer on it yet. */
  #forSecond: Archive | undefined;
  /** Closed after its application was told that all is sent: what a connection has not taken yet goes on it. */
  #owesRest = false;
  /** The first connection, which brings nothing of a closed flow, and the peer may not know so yet. */
  #empty: Leg | undefined;

  constructor(outer: Outer, options: FlowOptions, start: FlowStart = {}) {
    this.outer = outer;
    this.options = options;
    this.receives = start.receives ?? 'reply';
    this.peerThreshold = options.threshold;
    const { received = 0, sent, archive, ended = false, fin = false } = start;
    this.sender = new Sender(this, sent === undefined ? undefined : { offset: sent, archive });
    this.receiver = new Receiver(this, { received, ended, fin });
    this.#place = open.push(this) - 1;
  }

  /** There is nothing more to tell the peer. */
  #told(): void {
    const at = this.#place;
    if (at < 0) return;
    this.#place = -1;
    const last = open.pop() as Flow;
    if (last === this) return;
    open[at] = last;
    last.#place = at;
  }

  get tx(): SendMachine {
    return this.sender.tx;
  }

  get rx(): ReceiveMachine {
    return this.receiver.rx;
  }

  // ------------------------------------------------------------------ copies come and go

  /**
   * A copy may carry bytes from now on. `prefix` (a hello or an answer) goes out in the same system call as what follows.
   * True: it was sent all that the application had written before.
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

  /** The peer goes on, or has gone to the end, without the first connection. */
  forsakeFirst(): void {
    const first = this.legs[PRIMARY];
    if (first === undefined) return;
    if (!this.closed) {
      if (this.legs[REPLICA] !== undefined) this.abandon(PRIMARY);
      return;
    }
    this.legs[PRIMARY] = undefined;
    first.abort();
    this.#settled();
  }

  #lose(copy: Copy, closed = false): void {
    this.receiver.lose(copy);
    this.sender.lose(copy, closed);
    this.poke();
  }

  /** A copy that was pending is gone (the machines know): see what follows from it. */
  poke(): void {
    this.sender.trimArchive();
    this.sender.release();
    // Of a flow that never connects the client says why.
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
    if (this.closed) return this.#settled(true);
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
      if (this.closed) return this.#settled(!this.rx.done[copy]);
      // Both streams are declared on it: it has done its part, whatever the first copy still brings.
      if (this.rx.done[copy] && this.tx.total >= 0) return this.receiver.checkEnd();
      if (!this.rx.done[copy]) counters.copiesFailed++;
      this.#lose(copy, this.rx.done[copy]);
      return;
    }
    if (!this.closed) return this.receiver.fin();
    this.rx.fin();
    this.peerDone(leg);
  }

  /** The flow is closed, and `leg` has brought the peer's stream to its end. */
  peerDone(leg: Leg | undefined): void {
    if (!this.#looking) this.letGo(leg);
  }

  // ------------------------------------------------------------------ closing

  get bytesRead(): number {
    return this.rx.delivered;
  }

  /** A write of the application's is not done yet. */
  get writing(): boolean {
    return this.sender.writing;
  }

  /** Something was given to the system, or is about to be, and is not taken yet. */
  get underWay(): boolean {
    return this.sender.underWay;
  }

  /** Bytes given to the system and not yet taken. */
  get backlog(): number {
    return (this.legs[PRIMARY]?.backlog ?? 0) + (this.legs[REPLICA]?.backlog ?? 0);
  }

  /** The application's socket is destroyed. `parted`: how the peer is told, which may be a moment later. */
  close(reset: boolean, parted?: (reset: boolean) => void): void {
    if (this.closed) return;
    this.closed = true;
    this.#owesRest = this.sender.isSent;
    // Whatever would reach the peer as an orderly end would make what is lost look complete.
    reset ||= this.broken;
    this.#parted = parted;
    this.receiver.close();
    for (const copy of COPIES) if (reset || !this.#misleads(copy)) this.client?.copyAbandoned(copy);
    const looks = !reset && this.outer.destroyed && this.#mayLeaveUnread;
    if (!reset && this.client !== undefined && this.tx.archived && this.#misleads(PRIMARY)) {
      this.#firstHasRest = true;
      this.client.keepForFirst(this.sender.takeArchive() ?? new Archive());
    } else if (!reset && this.tx.archived && this.#awaitsAnswer) this.#forSecond = this.sender.takeArchive();
    this.sender.close();
    if (looks) this.#look();
    else this.#part(reset);
  }

  exit(): void {
    if (this.#looking) this.#part(false);
    else this.close(false);
  }

  /**
   * The application has neither ended its stream nor been told of the peer's end, nor has it written anything since it read last, which
   * the peer is to have.
   */
  get #mayLeaveUnread(): boolean {
    const connected = this.legs.some((leg) => leg !== undefined);
    return connected && !this.receiver.ended && this.tx.total < 0 && this.sender.turned;
  }

  /**
   * Where net closes a connection with bytes unread the system resets it. Whether there are any only reading tells: what the system
   * has by now is read in the next turn of the event loop.
   */
  #look(): void {
    this.#looking = true;
    for (const leg of this.legs) leg?.resumeReading();
    const told = () => this.#part(this.receiver.leftUnread);
    if (this.receiver.leftUnread) told();
    else setImmediate(() => setImmediate(() => this.#looking && told()));
  }

  /**
   * The peer is told. A copy on which its end has not been read yet is drained first: closing it would send RST and take bytes of ours
   * with it that the peer may need.
   */
  #part(reset: boolean): void {
    this.#looking = false;
    this.#told();
    this.#parted?.(reset);
    this.#parted = undefined;
    const orderly = this.receiver.ended && this.tx.total >= 0;
    const spare = this.#firstHasAll;
    if (orderly && !reset) this.#tellOfFirst();
    for (const copy of COPIES) {
      const leg = this.legs[copy];
      if (leg === undefined) continue;
      if (!reset && this.#isEmpty(copy)) {
        leg.sink = undefined;
        this.#empty = leg.unref();
        this.legs[copy] = undefined;
      } else if (this.tx.copies[copy] === 'pending') {
        // Whoever has not answered may be a service of another kind, to which the end of a process is no reset.
        if (exiting && !reset) leg.close();
        else if (reset || !this.#awaitsAnswer) leg.abort();
        else {
          this.client?.keepSecond(leg, this.#forSecond, this.tx.offset);
          this.#forSecond = undefined;
        }
        this.legs[copy] = undefined;
      } else if (reset) {
        // A reset right behind the word would make the peer's next write fail before it has read that.
        if (copy === REPLICA) {
          this.sender.post(leg, [controlRecord(Control.reset, 0)], undefined);
          this.letGo(leg);
        } else {
          this.legs[copy] = undefined;
          leg.abort();
        }
      } else if (!orderly) {
        if (copy === REPLICA && this.tx.total < 0)
          this.sender.post(leg, [controlRecord(Control.end, this.tx.offset)], undefined);
        this.letGo(leg);
      } else {
        if (this.rx.done[copy]) this.letGo(leg);
        else if (copy === PRIMARY && this.tx.copies[PRIMARY] !== 'open') {
          // It could not carry our end, so the peer will not end it either.
          this.legs[copy] = undefined;
          leg.abort();
        } else {
          leg.unref();
          leg.resumeReading();
        }
      }
    }
    this.#forSecond?.drop();
    if (this.legs[PRIMARY] === undefined && this.legs[REPLICA] === undefined)
      return this.#settled(this.tx.copies[REPLICA] === 'gone');
    // As the kernel does for a plain connection, what the peer has not taken yet is kept for it; it may be slow to read.
    const carrying = !reset && COPIES.some((copy) => this.legs[copy] && this.tx.copies[copy] === 'open');
    const over = () => {
      for (const copy of COPIES) {
        const leg = this.legs[copy];
        this.legs[copy] = undefined;
        // One that carries our end is not reset: what the peer has not read yet would be lost.
        const carriesEnd = !reset && (this.options.loser === 'fin' || this.tx.copies[copy] === 'open');
        if (carriesEnd) leg?.close();
        else leg?.abort();
      }
      this.#settled();
    };
    this.#linger = startLinger(over, this.options.pairTimeout, carrying);
    const { [REPLICA]: second } = this.legs;
    if (spare && second !== undefined && second.backlog > 0) this.#endStuck(second);
  }

  /** Client: the first connection carries the flow, and the second is established and has had no answer yet. */
  get #awaitsAnswer(): boolean {
    const [first, second] = this.tx.copies;
    return (
      this.client !== undefined &&
      first === 'open' &&
      second === 'pending' &&
      this.legs[REPLICA]?.unheard === true
    );
  }

  /** The system has all of ours by the first connection, as it would with net. */
  get #firstHasAll(): boolean {
    const { [PRIMARY]: first } = this.legs;
    return first?.backlog === 0 && this.tx.copies[PRIMARY] === 'open' && this.tx.hasAll(PRIMARY);
  }

  /** What the system does not take of a connection keeps the process: `second` has a while, and as long as it moves. */
  #endStuck(second: Leg, before = Number.POSITIVE_INFINITY): void {
    this.#stuck = setTimeout(() => {
      const { unsent } = second;
      if (unsent === 0 || this.legs[REPLICA] !== second) return;
      if (unsent < before) return this.#endStuck(second, unsent);
      second.close();
      this.legs[REPLICA] = undefined;
      this.#settled();
    }, this.options.pairTimeout).unref();
  }

  /**
   * Server: the flow is over in both directions, and its first connection has not come. Its client may take that for established, and
   * go on sending on it.
   */
  #tellOfFirst(): void {
    const second = this.legs[REPLICA];
    if (this.receives === 'request' && second !== undefined && this.tx.copies[PRIMARY] === 'pending')
      this.sender.post(second, [controlRecord(Control.alone, this.tx.offset)], undefined);
  }

  /**
   * The peer's stream has been read to its end on this copy, and ours is written. On the second connection the peer may still
   * send word of what it receives; closing on that unread would be a reset and take our last bytes with it, so it is ended
   * and read until the peer ends it too.
   */
  letGo(leg: Leg | undefined): void {
    if (leg === undefined || leg.ending) return;
    if (leg.copy === REPLICA) {
      leg.ending = true;
      leg.unref();
      leg.resumeReading();
      leg.finish(() => {});
      return;
    }
    // Closed earlier, it would bring an orderly end before our last bytes, and the rest would look complete.
    leg.ending = true;
    if (this.#owesRest) leg.whenFinished(() => this.#closeFirst(leg));
    else this.#closeFirst(leg);
  }

  #closeFirst(leg: Leg): void {
    if (this.legs[PRIMARY] !== leg) return;
    this.legs[PRIMARY] = undefined;
    leg.close();
    this.#settled();
  }

  /**
   * A plain connection that may be established without our knowing: ended before the other has brought our bytes, it would
   * be taken for the end of a stream without any. Where the other is lost it is all that can bring them.
   */
  #misleads(copy: Copy): boolean {
    if (copy !== PRIMARY || this.tx.copies[PRIMARY] !== 'pending') return false;
    return this.legs[REPLICA] !== undefined || (this.joined && this.tx.archived);
  }

  /**
   * Gives away the one connection that carries the flow, if it is a plain stream that owes the application nothing and has taken
   * all it wrote; the flow is over then.
   */
  release(): Handle | undefined {
    const { legs, tx, rx } = this;
    const leg = legs[PRIMARY];
    if (leg === undefined || legs[REPLICA] !== undefined || this.closed) return undefined;
    if (tx.copies[REPLICA] !== 'gone' || tx.state !== 'CHOSEN' || tx.total >= 0 || leg.backlog > 0)
      return undefined;
    if (rx.plain !== rx.delivered || this.receiver.ended) return undefined;
    this.closed = true;
    this.#told();
    this.receiver.close();
    this.sender.close();
    legs[PRIMARY] = undefined;
    return leg.release();
  }

  /** All that was written is on the second connection: the end of the first would be that of a stream without any of it. */
  #isEmpty(copy: Copy): boolean {
    return (
      copy === PRIMARY &&
      !this.joined &&
      this.tx.copies[PRIMARY] === 'gone' &&
      this.tx.copies[REPLICA] === 'open'
    );
  }

  /** `failed`: the last connection may not have brought everything. */
  #settled(failed = false): void {
    if (this.legs[PRIMARY] !== undefined || this.legs[REPLICA] !== undefined) return;
    if (!failed || !this.#firstHasRest) this.client?.copyAbandoned(PRIMARY);
    if (this.joined) this.#empty?.close();
    else this.#empty?.abort();
    this.#empty = undefined;
    clearTimeout(this.#stuck);
    if (this.#linger !== undefined) {
      endLinger(this.#linger);
      this.#linger = undefined;
    }
  }
}
