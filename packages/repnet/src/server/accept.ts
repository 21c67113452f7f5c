/**
 * The server side of a flow: a plain accepted connection that waits for its second one, the flow
 * that the two become, and a flow that began with its second connection.
 */

import { systemError } from '../errors.js';
import { Flow } from '../flow/flow.js';
import { Leg } from '../flow/leg.js';
import { COPIES, PRIMARY, REPLICA } from '../flow/machine.js';
import { patientTimeout } from '../flow/waits.js';
import { Archive } from '../memory/archive.js';
import * as budget from '../memory/budget.js';
import type { Entry } from '../memory/waiting.js';
import { applySettings, type Handle, isBroken, nativeHandle, takeHandle } from '../net-internals.js';
import type { Replication } from '../options.js';
import {
  type Attachment,
  becomeNative,
  type Connection,
  detach,
  type Inner,
  isUnref,
} from '../socket-internals.js';
import { channels, counters, notePeerVersion } from '../stats.js';
import { type Hello, HelloFlag } from '../wire.js';
import { notePairing, noteUnpaired, pairsUsually } from './hosts.js';
import { Remains } from './remains.js';

const END_GRACE = 100;

/**
 * Opens the second connection with the answer. A client that sends nothing before the answer gets
 * it at once, others with the first bytes for them.
 */
function openAnswered(flow: Flow, leg: Leg, hello: Hello, answer: Buffer): boolean {
  notePeerVersion(hello.version);
  const replayed = flow.open(leg, answer);
  if ((hello.flags & HelloFlag.early) === 0) leg.flush();
  return replayed;
}

export class Accepted implements Attachment {
  readonly socket: Inner;
  readonly #replication: Replication;
  readonly #port: number;
  /** The flow's second connection is there and has not said its hello yet. */
  readonly #secondComes: (first: Inner) => boolean;
  flow: Flow | undefined;
  paired = false;
  /** Place on the waiting list. */
  entry: Entry<Accepted | Remains> | undefined;
  #archive: Archive | undefined;
  /** Everything written is archived. */
  #whole = true;
  #sent = 0;
  #ended = false;
  #over = false;

  constructor(socket: Inner, replication: Replication, port: number, secondComes: (first: Inner) => boolean) {
    this.socket = socket;
    this.#replication = replication;
    this.#port = port;
    this.#secondComes = secondComes;
  }

  /** Returns whether a connection that comes now can take part. */
  get joinable(): boolean {
    return !this.socket.destroyed;
  }

  get native(): boolean {
    return this.flow === undefined;
  }

  /** Returns whether nothing has come of the flow but a hello, and its connection is gone. */
  get blank(): boolean {
    if (this.flow === undefined || this.flow.rx.reach.some((bytes) => bytes > 0)) return false;
    return !this.flow.tx.copies.includes('open');
  }

  /** Keeps bytes that the application writes before the flow is paired. */
  archive(bytes: Buffer): void {
    this.#sent += bytes.length;
    budget.carried(bytes.length);
    if (!this.#whole) return;
    this.#archive ??= new Archive();
    if (this.#sent <= this.#replication.threshold && this.#archive.push(bytes)) return;
    counters.chosenEarly++;
    this.#drop();
  }

  /** The second connection has been sent all that was written before it came. */
  #replayed = false;

  failed(error: NodeJS.ErrnoException): Error | null {
    const { flow } = this;
    if (flow === undefined) return error;
    // The write was under way on the first connection when the second came, and the first was lost.
    if (this.#replayed && flow.tx.copies[REPLICA] === 'open') return null;
    flow.broken = true;
    return error.code === 'ECANCELED' ? (flow.lastError ?? systemError('ECONNRESET', 'write')) : error;
  }

  /** The end that is held back: undefined if there is none, null for a FIN, or the error. */
  #held: Error | null | undefined;
  /**
   * The end or error that was held back is passed on: the wait goes on, but holds nothing more
   * back.
   */
  #told = false;
  #grace: NodeJS.Timeout | undefined;

  holds(error: Error | null): boolean {
    if (this.flow !== undefined || this.#over || this.entry?.state !== 'waiting') return false;
    if (this.#told || this.#held !== undefined) return false;
    const broken = isBroken(nativeHandle(this.socket) as Handle);
    // The application may destroy a sound connection with the error of another.
    if (error !== null && !broken) return false;
    // An orderly end comes after all bytes. The system reports a reset that follows data as an end,
    // too.
    const expected = broken && pairsUsually(this.socket.remoteAddress);
    if (!expected && !this.#secondComes(this.socket)) return false;
    // A second connection would not bring the rest of an elephant.
    if (this.socket.bytesRead > this.#replication.threshold) return false;
    this.#held = error;
    this.#hold(this.#replication.pairTimeout);
    return true;
  }

  /**
   * Holds the end back for `END_GRACE`, and up to `most` ms while a second connection is there
   * whose client may be busy.
   */
  #hold(most: number): void {
    const grace = patientTimeout(() => {
      if (this.#grace !== grace || this.#held === undefined) return;
      if (most > END_GRACE && this.#secondComes(this.socket)) this.#hold(most - END_GRACE);
      else this.#letGo();
    }, END_GRACE);
    this.#grace = grace;
    // A connection that is read to its end keeps no process.
    if (!isUnref(this.socket)) grace.ref();
  }

  #letGo(): void {
    const held = this.#held;
    if (held === undefined) return;
    this.#held = undefined;
    this.#told = true;
    clearTimeout(this.#grace);
    if (held !== null) this.socket.destroy(held);
    else {
      this.socket.push(null);
      this.socket.read(0);
    }
  }

  ending(): void {
    this.#ended = true;
  }

  #drop(): void {
    this.#whole = false;
    this.#archive?.drop();
    this.#archive = undefined;
  }

  /** The second connection has come. The native handle moves from the socket into a leg. */
  pair(replica: Leg, hello: Hello, answer: Buffer, rest: Buffer | undefined): void {
    const { socket } = this;
    const handle = takeHandle(socket);
    const state = (socket as unknown as { _readableState: { ended: boolean } })._readableState;
    const flow = new Flow(socket, this.#replication, {
      receives: 'request',
      received: handle.bytesRead,
      ended: state.ended,
      fin: this.#held === null,
      sent: this.#sent,
      archive: this.#whole ? (this.#archive ?? new Archive()) : undefined,
    });
    this.#archive = undefined;
    flow.peerThreshold = hello.threshold;
    const reading = handle.reading === true;
    clearTimeout(this.#grace);
    notePairing(replica.remoteAddress);
    const failed = this.#held instanceof Error;
    const primary = new Leg(PRIMARY, flow, handle, !reading);
    this.flow = flow;
    replica.sink = flow;
    flow.adopt(primary);
    if (failed) flow.abandon(PRIMARY);
    if (this.#ended) flow.tx.end();
    this.#replayed = openAnswered(flow, replica, hello, answer);
    if (this.#held === null) flow.legFin(primary);
    this.#bothThere();
    if (!reading && !state.ended) flow.receiver.pause(replica, rest);
    else if (rest !== undefined && !replica.lost) replica.receive(rest);
  }

  /** The second connection came first. */
  begin(replica: Leg, hello: Hello, answer: Buffer): Flow {
    const flow = new Flow(this.socket, this.#replication, { receives: 'request' });
    this.flow = flow;
    flow.peerThreshold = hello.threshold;
    replica.sink = flow;
    openAnswered(flow, replica, hello, answer);
    return flow;
  }

  /** The first connection has come after the second. */
  join(handle: Handle): void {
    const flow = this.flow as Flow;
    applySettings(this.socket, handle);
    const primary = new Leg(PRIMARY, flow, handle);
    notePairing(primary.remoteAddress);
    flow.open(primary);
    this.#bothThere();
  }

  /**
   * Both connections are there: the wait is over, as the list knows, and what it kept is dropped.
   */
  #bothThere(): void {
    this.paired = true;
    this.entry = undefined;
    this.onClosed = undefined;
    counters.flowsPaired++;
    if (channels.paired.hasSubscribers) channels.paired.publish({ socket: this.socket });
  }

  /** The wait is over: no connection joins the flow any more. */
  waitOver(): void {
    this.#drop();
    this.#letGo();
    if (this.flow === undefined) {
      if (!this.#over) detach(this.socket);
    } else for (const copy of COPIES) if (this.flow.tx.copies[copy] === 'pending') this.flow.abandon(copy);
  }

  /**
   * Hands over the first connection, which carries the flow elsewhere; a second one is refused from
   * now on.
   */
  handOver(): boolean {
    if (this.flow !== undefined) {
      const handle = this.flow.release();
      if (handle === undefined) return false;
      becomeNative(this.socket, handle);
    }
    this.#over = true;
    this.#held = undefined;
    clearTimeout(this.#grace);
    this.#drop();
    this.onClosed?.(undefined);
    return true;
  }

  closed(reset: boolean): void {
    this.#over = true;
    clearTimeout(this.#grace);
    const remains = reset || this.socket.errored ? undefined : this.#remains();
    this.#drop();
    if (this.flow === undefined) {
      this.onClosed?.(remains);
      return;
    }
    this.flow.close(reset, (broken) => {
      if (broken) remains?.waitOver();
      this.onClosed?.(broken ? undefined : remains);
    });
  }
  /**
   * Called when the socket is closed, with what remains of the flow for a connection that may still
   * come, if all of it is there.
   */
  onClosed: ((remains: Remains | undefined) => void) | undefined;

  #remains(): Remains | undefined {
    if (this.entry?.state !== 'waiting') return undefined;
    if (this.flow !== undefined) {
      if (!this.flow.tx.archived) return undefined;
      return new Remains({
        archive: this.flow.sender.takeArchive(),
        total: this.flow.tx.offset,
        endedAt: undefined,
      });
    }
    if (noteUnpaired(this.socket.remoteAddress) || !this.#whole) return undefined;
    const archive = this.#archive;
    this.#archive = undefined;
    const { ended } = (this.socket as unknown as { _readableState: { ended: boolean } })._readableState;
    return new Remains({
      archive,
      total: this.#sent,
      endedAt: ended ? this.socket.bytesRead : undefined,
    });
  }

  *connections(): Iterable<Connection> {
    for (const leg of this.flow?.legs ?? []) if (leg !== undefined) yield leg;
    if (this.flow !== undefined) yield* this.flow.receiver.waits();
    if (this.#grace !== undefined) yield this.#grace;
  }

  peername(): object {
    const leg = this.flow?.leg;
    if (leg === undefined) return {};
    return { address: leg.remoteAddress, family: leg.remoteFamily, port: leg.remotePort };
  }

  sockname(): object {
    const leg = this.flow?.leg;
    if (leg === undefined) return {};
    return { address: leg.localAddress, family: leg.localFamily, port: this.#port };
  }
}
