/**
 * How a flow is closed, once the application's socket is destroyed: what its peer is told, and what becomes of each connection. A
 * connection that still has something to bring to the peer, or to say of what it has brought, outlives the socket for a bounded time.
 */
import { Archive } from '../memory/archive.js';
import { Record as Control, controlRecord } from '../wire.js';
import type { Flow } from './flow.js';
import type { Leg } from './leg.js';
import { endLinger, type Linger, startLinger } from './linger.js';
import { COPIES, type Copy, PRIMARY, REPLICA } from './machine.js';
import { wordTimeout } from './patience.js';

export class Closing {
  readonly #flow: Flow;
  readonly #parted: (reset: boolean) => void;
  /** The peer is not told how yet: what it has sent is still being looked for. */
  #looking = false;
  #linger: Linger | undefined;
  /** The first connection has all that the second does not take. */
  #stuck: NodeJS.Timeout | undefined;
  /** A connection failed while the peer's bytes were being read. */
  #failed = false;
  /** The first connection is still to come, and carries all that was written if the second fails. */
  #firstHasRest = false;
  /** Bytes for the second connection, should the server answer on it yet. */
  #forSecond: Archive | undefined;
  /** The application was told that all is sent: what a connection has not taken yet goes on it. */
  readonly #owesRest: boolean;
  /** The first connection, which brings nothing, and the peer may not know so yet. */
  #empty: Leg | undefined;

  /** `parted` is called when the peer is told, with how. */
  constructor(flow: Flow, parted: (reset: boolean) => void) {
    this.#flow = flow;
    this.#parted = parted;
    this.#owesRest = flow.sender.isSent;
  }

  begin(reset: boolean): void {
    const { client, receiver, sender, tx } = this.#flow;
    receiver.close();
    for (const copy of COPIES) if (reset || !this.#misleads(copy)) client?.copyAbandoned(copy);
    const looks = !reset && this.#flow.outer.destroyed && this.#mayLeaveUnread;
    if (!reset && client !== undefined && tx.archived && this.#misleads(PRIMARY)) {
      this.#firstHasRest = true;
      client.keepForFirst(sender.takeArchive() ?? new Archive());
    } else if (!reset && tx.archived && this.#awaitsAnswer) this.#forSecond = sender.takeArchive();
    sender.close();
    if (looks) this.#look();
    else this.#part(reset);
  }

  /** The process exits. */
  hurry(): void {
    if (this.#looking) this.#part(false);
  }

  /** `leg` has brought the peer's stream to its end. */
  peerDone(leg: Leg | undefined): void {
    if (!this.#looking) this.#letGo(leg);
  }

  /**
   * The application has neither ended its stream nor been told of the peer's end, nor has it written anything since it read last, which
   * the peer is to have.
   */
  get #mayLeaveUnread(): boolean {
    const connected = this.#flow.legs.some((leg) => leg !== undefined);
    return connected && !this.#flow.receiver.ended && this.#flow.tx.total < 0 && this.#flow.sender.turned;
  }

  /**
   * Reads what the system has by now, in the next turn of the event loop: net resets a connection that it closes with bytes unread, and only
   * reading tells whether there are any.
   */
  #look(): void {
    this.#looking = true;
    for (const leg of this.#flow.legs) leg?.resumeReading();
    const told = () => this.#part(this.#flow.receiver.leftUnread);
    if (this.#flow.receiver.leftUnread) told();
    else setImmediate(() => setImmediate(() => this.#looking && told()));
  }

  /** Tells the peer, and lets go of what is not needed for that. */
  #part(reset: boolean): void {
    const { legs, tx } = this.#flow;
    this.#looking = false;
    this.#parted(reset);
    const orderly = this.#flow.receiver.ended && tx.total >= 0;
    const spare = this.#firstHasAll;
    if (orderly && !reset) this.#tellOfFirst();
    for (const copy of COPIES) {
      const leg = legs[copy];
      if (leg === undefined) continue;
      if (!reset && this.#isEmpty(copy)) {
        leg.sink = undefined;
        this.#empty = leg.unref();
        legs[copy] = undefined;
      } else if (tx.copies[copy] === 'pending') this.#partPending(leg, reset);
      else if (reset) this.#reset(leg);
      else if (orderly) this.#drain(leg);
      else {
        if (copy === REPLICA && tx.total < 0)
          this.#flow.sender.post(leg, [controlRecord(Control.end, tx.offset)], undefined);
        this.#letGo(leg);
      }
    }
    this.#forSecond?.drop();
    if (legs[PRIMARY] === undefined && legs[REPLICA] === undefined)
      return this.settled(this.#failed || tx.copies[REPLICA] === 'gone');
    this.#startLinger(reset);
    const { [REPLICA]: second } = legs;
    if (spare && second !== undefined && second.backlog > 0) this.#endStuck(second);
  }

  /** `leg` carries nothing yet. */
  #partPending(leg: Leg, reset: boolean): void {
    const { client, exiting, legs, tx } = this.#flow;
    // Whoever has not answered may be a service of another kind, to which the end of a process is no reset.
    if (exiting && !reset) leg.close();
    else if (reset || !this.#awaitsAnswer) leg.abort();
    else {
      client?.keepSecond(leg, this.#forSecond, tx.offset);
      this.#forSecond = undefined;
    }
    legs[leg.copy] = undefined;
  }

  #reset(leg: Leg): void {
    if (leg.copy === PRIMARY) return this.#abort(leg);
    // A reset right behind the word would make the peer's next write fail before it has read that.
    this.#flow.sender.post(leg, [controlRecord(Control.reset, 0)], undefined);
    this.#letGo(leg);
  }

  #abort(leg: Leg): void {
    this.#flow.legs[leg.copy] = undefined;
    leg.abort();
  }

  /**
   * Both streams are over. A copy on which the peer's end has not been read yet is read to it: closing it would send RST and take bytes
   * of ours with it that the peer may need.
   */
  #drain(leg: Leg): void {
    const { rx, tx } = this.#flow;
    if (rx.done[leg.copy]) this.#letGo(leg);
    // A connection that could not carry our end is not ended by the peer either.
    else if (leg.copy === PRIMARY && tx.copies[PRIMARY] !== 'open') this.#abort(leg);
    else {
      leg.unref();
      leg.resumeReading();
    }
  }

  /** As the kernel does for a plain connection, what the peer has not taken yet is kept for it; it may be slow to read. */
  #startLinger(reset: boolean): void {
    const { legs, options, tx } = this.#flow;
    const carrying = !reset && COPIES.some((copy) => legs[copy] && tx.copies[copy] === 'open');
    const over = () => {
      for (const copy of COPIES) {
        const leg = legs[copy];
        legs[copy] = undefined;
        // One that carries our end is not reset: what the peer has not read yet would be lost.
        const carriesEnd = !reset && (options.loser === 'fin' || tx.copies[copy] === 'open');
        if (carriesEnd) leg?.close();
        else leg?.abort();
      }
      this.settled();
    };
    // The word of a reset waits for a peer that stands still.
    const { pairTimeout } = options;
    const tells = reset && legs[REPLICA] !== undefined;
    this.#linger = startLinger(over, tells ? wordTimeout(pairTimeout) : pairTimeout, carrying);
  }

  /** Client: the first connection carries the flow, and the second is established and has had no answer yet. */
  get #awaitsAnswer(): boolean {
    const { client, legs, tx } = this.#flow;
    const [first, second] = tx.copies;
    return (
      client !== undefined && first === 'open' && second === 'pending' && legs[REPLICA]?.unheard === true
    );
  }

  /** The system has all of ours by the first connection, as it would with net. */
  get #firstHasAll(): boolean {
    const { legs, tx } = this.#flow;
    return legs[PRIMARY]?.backlog === 0 && tx.copies[PRIMARY] === 'open' && tx.hasAll(PRIMARY);
  }

  /** Bytes that the system does not take keep the process: `second` has a while, and as long as it moves. */
  #endStuck(second: Leg, before = Number.POSITIVE_INFINITY): void {
    this.#stuck = setTimeout(() => {
      const { unsent } = second;
      if (unsent === 0 || this.#flow.legs[REPLICA] !== second) return;
      if (unsent < before) return this.#endStuck(second, unsent);
      second.close();
      this.#flow.legs[REPLICA] = undefined;
      this.settled();
    }, this.#flow.options.pairTimeout).unref();
  }

  /**
   * Server: the flow is over in both directions, and its first connection has not come. Its client may take that for established, and
   * go on sending on it.
   */
  #tellOfFirst(): void {
    const { legs, receives, sender, tx } = this.#flow;
    const second = legs[REPLICA];
    if (receives === 'request' && second !== undefined && tx.copies[PRIMARY] === 'pending')
      sender.post(second, [controlRecord(Control.alone, tx.offset)], undefined);
  }

  /**
   * The peer's stream has been read to its end on this copy, and ours is written. On the second connection the peer may still
   * send word of what it receives; closing on that unread would be a reset and take our last bytes with it, so it is ended
   * and read until the peer ends it too.
   */
  #letGo(leg: Leg | undefined): void {
    if (leg === undefined || leg.ending) return;
    if (leg.copy === REPLICA) {
      leg.ending = true;
      leg.unref();
      leg.resumeReading();
      if (!this.#isEndedByPeer) leg.finish(() => {});
      return;
    }
    // Closed earlier, it would bring an orderly end before our last bytes, and the rest would look complete.
    leg.ending = true;
    if (this.#owesRest) leg.whenFinished(() => this.#closeFirst(leg));
    else this.#closeFirst(leg);
  }

  /**
   * Client: both streams are over, as the server knows by records. Its FIN on the second connection comes with the end of
   * its socket, and is answered by closing: one of our own would tell it nothing.
   */
  get #isEndedByPeer(): boolean {
    const { client, receiver, rx, tx } = this.#flow;
    return (
      client !== undefined &&
      receiver.ended &&
      rx.done[REPLICA] &&
      tx.total >= 0 &&
      tx.copies[REPLICA] === 'open'
    );
  }

  #closeFirst(leg: Leg): void {
    if (this.#flow.legs[PRIMARY] !== leg) return;
    this.#flow.legs[PRIMARY] = undefined;
    leg.close();
    this.settled();
  }

  /**
   * A plain connection that may be established without our knowing: ended before the other has brought our bytes, it would
   * be taken for the end of a stream without any. Where the other is lost it is all that can bring them.
   */
  #misleads(copy: Copy): boolean {
    const { joined, legs, tx } = this.#flow;
    if (copy !== PRIMARY || tx.copies[PRIMARY] !== 'pending') return false;
    return legs[REPLICA] !== undefined || (joined && tx.archived);
  }

  /** All that was written is on the second connection: the end of the first would be that of a stream without any of it. */
  #isEmpty(copy: Copy): boolean {
    const { joined, tx } = this.#flow;
    return copy === PRIMARY && !joined && tx.copies[PRIMARY] === 'gone' && tx.copies[REPLICA] === 'open';
  }

  /** A connection is gone; if it was the last, the flow is over. `failed`: it may not have brought everything. */
  settled(failed = false): void {
    const { client, joined, legs } = this.#flow;
    if (this.#looking) {
      this.#failed ||= failed;
      return;
    }
    if (legs[PRIMARY] !== undefined || legs[REPLICA] !== undefined) return;
    if (!failed || !this.#firstHasRest) client?.copyAbandoned(PRIMARY);
    if (joined) this.#empty?.close();
    else this.#empty?.abort();
    this.#empty = undefined;
    clearTimeout(this.#stuck);
    if (this.#linger !== undefined) {
      endLinger(this.#linger);
      this.#linger = undefined;
    }
  }
}
