/**
 * The client side of RepFlow: connections to the first and the second port from one source port.
 */

import { Flow } from '../flow/flow.js';
import { Leg } from '../flow/leg.js';
import { COPIES, type Copy, PRIMARY, REPLICA } from '../flow/machine.js';
import type { FlowClient } from '../flow/roles.js';
import { patientTimeout } from '../flow/waits.js';
import { begun } from '../info.js';
import type { Archive } from '../memory/archive.js';
import * as budget from '../memory/budget.js';
import { applySettings, type Handle } from '../net-internals.js';
import {
  type Attachment,
  attach,
  becomeNative,
  type Connection,
  type DialTarget,
  detach,
  type Inner,
  isUnref,
  setConnecting,
} from '../socket-internals.js';
import { channels, counters, notePeerVersion } from '../stats.js';
import type { Answer } from '../wire.js';
import type { Attempt, AttemptOptions, AttemptSink } from './attempt.js';
import { dialPlain } from './dial-plain.js';
import {
  AttemptEvents,
  type ConnectionError,
  connected,
  copyAttempts,
  isCollision,
  isShortage,
  newAttempt,
  withoutLocal,
} from './dialing.js';
import { Hedge } from './hedge.js';
import { flowHello } from './hello.js';
import { LateFirstSlot, LateSecond } from './late.js';
import type { Peer } from './peers.js';
import { nextPort } from './ports.js';
import { type Address, Destination } from './resolution.js';
import { ServerReport } from './server-report.js';

const PORT_ATTEMPTS = 5;
/**
 * Times `pairTimeout` for which a known server may answer a flow whose first connection is lost.
 */
const MOST_WAITS = 10;

export class FlowDial implements Attachment, AttemptSink, FlowClient {
  readonly native = false;
  readonly #socket: Inner;
  readonly #target: DialTarget;
  readonly #known: Peer | undefined;
  flow: Flow;
  /** Connections that are not established yet. */
  readonly #attempts: [Attempt | undefined, Attempt | undefined] = [undefined, undefined];
  #retries = 0;
  readonly #late = new LateFirstSlot();
  /** When the host was known, by `performance.now()`. */
  #startTime = performance.now();
  #localPort = 0;
  #connectError: ConnectionError | undefined;
  #timer: NodeJS.Timeout | undefined;
  readonly #events = new AttemptEvents();
  readonly #destination: Destination;
  readonly #hedge: Hedge | undefined;
  readonly #report: ServerReport;

  constructor(socket: Inner, target: DialTarget, known: Peer | undefined) {
    this.#socket = socket;
    this.#target = target;
    this.#known = known;
    this.#report = new ServerReport(target, known);
    this.#destination = new Destination(target.net.host, target.net.lookup);
    this.#hedge = target.replication.copyDelay > 0 ? new Hedge(target) : undefined;
    this.flow = this.#newFlow();
  }

  get paired(): boolean {
    return this.flow.joined;
  }

  #newFlow(): Flow {
    const flow = new Flow(this.#socket, this.#target.replication);
    flow.peerKnown = this.#known !== undefined;
    flow.joined = false;
    if (this.#known !== undefined && this.#known.threshold > 0) flow.peerThreshold = this.#known.threshold;
    flow.client = this;
    return flow;
  }

  copyLost(leg: Leg, error: NodeJS.ErrnoException | undefined): boolean {
    // The second connection is refused, or lost before it was answered.
    if (leg.copy === REPLICA && this.flow.tx.copies[REPLICA] === 'pending') counters.copiesFailed++;
    return this.#lost(leg.copy, error as ConnectionError | undefined);
  }

  copyAbandoned(copy: Copy): void {
    this.#attempts[copy]?.abandon(false);
    this.#attempts[copy] = undefined;
    if (copy === PRIMARY) this.#late.abandon();
  }

  keepForFirst(archive: Archive): void {
    this.#late.keep(archive);
  }

  keepSecond(leg: Leg, archive: Archive | undefined, total: number): void {
    const { pairTimeout } = this.#target.replication;
    new LateSecond(leg, archive, total, pairTimeout, (bytes) => this.#proved(leg, bytes) !== undefined);
  }

  firstBytes(): void {
    if (this.#target.replication.hedgeOn === 'first-byte') this.#endWait();
  }

  /** The first connection has brought in time what the second waits for. */
  #endWait(): void {
    const hedge = this.#hedge;
    if (hedge === undefined) return;
    hedge.answered();
    if (this.#attempts[REPLICA] !== undefined || this.flow.tx.copies[REPLICA] !== 'pending') return;
    if (this.flow.legs[REPLICA] !== undefined) return;
    // The second connection will not begin: whatever waits for it, like the end of the stream, goes
    // on now.
    hedge.stop();
    this.flow.abandon(REPLICA);
  }

  start(): void {
    counters.flowsFlow++;
    attach(this.#socket, this);
    try {
      this.#connectBoth();
    } catch (error) {
      this.closed(false);
      detach(this.#socket);
      setConnecting(this.#socket, false);
      throw error;
    }
    begun(this.#socket, 'flow');
  }

  #connectBoth(): void {
    const { host, port, localPort } = this.#target.net;
    const destination = this.#destination;
    this.#localPort = localPort ?? nextPort([port, this.#target.replication.replicaPort]);
    const primary = this.#attempt(PRIMARY, { host, port, ...destination.options });
    // If the port of a hedged connection is taken, the flow begins again without another delay.
    const waits = this.#hedge !== undefined && !this.#hedge.due;
    // The second begins first: if its port is taken, nothing has been sent on the first yet, and
    // another port will do.
    if (!waits && destination.address !== undefined) this.#connectSecond(destination.address);
    primary.start();
    if (waits)
      this.#hedge?.begin(() => {
        // Of several addresses the first connection has not chosen yet: the second follows it.
        if (!destination.undecided) this.#connectHedged();
      });
  }

  #connectSecond(address: Address): void {
    if (this.#hedge === undefined) this.#connectReplica(address);
    else this.#connectHedged();
  }

  /** Hedged: the second copy starts only if the first has brought nothing that it waits for. */
  #connectHedged(): void {
    const { address } = this.#destination;
    const slow = this.flow.rx.delivered === 0 && !this.flow.closed;
    if (slow && address !== undefined && budget.takeConnection()) this.#connectReplica(address);
    else this.flow.abandon(REPLICA);
  }

  #attempt(copy: Copy, own: { host: string; port: number } & Partial<AttemptOptions>): Attempt {
    const attempt = newAttempt(copy, this, this.#target, { localPort: this.#localPort, ...own });
    if (isUnref(this.#socket)) attempt.unref();
    this.#attempts[copy] = attempt;
    return attempt;
  }

  #connectReplica(host: Address): void {
    const { replicaPort, pairTimeout } = this.#target.replication;
    counters.copiesIssued++;
    this.#attempt(REPLICA, { host, port: replicaPort }).start();
    const { flow } = this;
    this.#timer ??= patientTimeout(() => this.#timeout(flow), pairTimeout);
  }

  /**
   * Abandons a connection that is still pending after `pairTimeout`; the server remembers the pair
   * for longer. The system makes handshakes, but a process answers, and may be busy: a known server
   * may answer for as long as the first connection carries the flow, and for `MOST_WAITS` times
   * `pairTimeout` if that is lost. `times`: how often `pairTimeout` has passed.
   */
  #timeout(flow: Flow, times = 1): void {
    if (flow !== this.flow || flow.closed) return;
    const [first, second] = flow.tx.copies;
    if (second === 'pending') {
      const isEstablished = flow.legs[REPLICA] !== undefined;
      if (isEstablished && times === 1) {
        counters.copiesFailed++;
        this.#report.silent();
      }
      const mayAnswer = isEstablished && this.#known !== undefined;
      const isOver = first === 'pending' || (first === 'gone' && times >= MOST_WAITS);
      if (!mayAnswer || isOver) return this.#giveUp(REPLICA);
      const { pairTimeout } = this.#target.replication;
      this.#timer = patientTimeout(() => this.#timeout(flow, times + 1), pairTimeout);
    } else if (first === 'pending' && second === 'open')
      // By itself the first is a plain connection, which has as long as the system gives it.
      this.#giveUp(PRIMARY);
  }

  #stopTimers(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#hedge?.stop();
  }

  #giveUp(copy: Copy): void {
    clearTimeout(this.#timer);
    this.flow.abandon(copy);
    this.#noneLeft();
  }

  #noneLeft(): boolean {
    const { tx } = this.flow;
    if (!this.#socket.connecting || tx.copies[PRIMARY] !== 'gone' || tx.copies[REPLICA] !== 'gone')
      return false;
    this.#socket.destroy(this.#connectError);
    return true;
  }

  attemptOpen(attempt: Attempt, handle: Handle): void {
    const { flow } = this;
    const { copy } = attempt;
    this.#attempts[copy] = undefined;
    // Small records must not wait for acknowledgements (Nagle); the application's own setting is
    // for its own stream.
    applySettings(this.#socket, handle, copy === REPLICA);
    const leg = new Leg(copy, flow, handle, true);
    leg.peername = attempt.remote;
    if (flow.closed) {
      this.#openLate(leg);
      return;
    }
    flow.legs[copy] = leg;
    if (copy === PRIMARY) {
      copyAttempts(attempt, this.#socket, this.#target.net.port);
      const destination = this.#destination;
      const chosen = destination.address === undefined;
      if (chosen) destination.chosen(leg.remoteAddress);
      // Before the flow, which has only this connection now, may give it away.
      this.#report.askBeside(leg, this.#startTime);
      flow.open(leg);
      if (this.#target.replication.hedgeOn === 'handshake') this.#endWait();
      this.#settle();
      if (this.#socket.connecting) connected(this.#socket, this.#target, this.#startTime);
      if (chosen && !flow.closed && flow.tx.copies[REPLICA] === 'pending') {
        // The system no longer knows the address of a connection that was reset.
        if (destination.address === undefined) flow.abandon(REPLICA);
        else if (this.#hedge?.due !== false) this.#connectSecond(destination.address);
      }
      return;
    }
    flow.receiver.expectAnswer(leg);
    leg.send([flowHello(this.#target, leg)], (error) => {
      if (error) leg.destroy(error);
    });
  }

  /** The application has closed the flow. */
  #openLate(leg: Leg): void {
    const { copyDelay, pairTimeout } = this.#target.replication;
    this.#late.open(leg, performance.now() - this.#startTime < copyDelay + pairTimeout);
  }

  #settle(): void {
    const { copies } = this.flow.tx;
    if (copies[PRIMARY] === 'pending' || copies[REPLICA] === 'pending') return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  answered(leg: Leg, bytes: Buffer): boolean {
    const { flow } = this;
    const answer = this.#proved(leg, bytes);
    if (answer === undefined) {
      const first = flow.legs[PRIMARY];
      if (first !== undefined) this.#report.askBeside(first, this.#startTime);
      leg.destroy();
      return false;
    }
    flow.joined = true;
    notePeerVersion(answer.version);
    if (flow.tx.copies[REPLICA] === 'pending') {
      flow.open(leg);
      this.#settle();
      if (this.#socket.connecting) connected(this.#socket, this.#target, this.#startTime);
    }
    if (channels.paired.hasSubscribers) channels.paired.publish({ socket: this.#socket });
    return true;
  }

  /**
   * Returns the answer in `bytes`, if the server has accepted the second connection and proved
   * itself on it.
   */
  #proved(leg: Leg, bytes: Buffer): Answer | undefined {
    const verdict = this.#report.judge(bytes, leg.remoteAddress ?? '');
    if (verdict === undefined) return undefined;
    const { answer, proves } = verdict;
    this.flow.peerKnown = true;
    this.flow.peerThreshold = answer.threshold;
    return proves ? answer : undefined;
  }

  attemptFailed(attempt: Attempt, error: ConnectionError | undefined): void {
    this.#attempts[attempt.copy] = undefined;
    if (this.flow.closed) return;
    if (attempt.copy === PRIMARY) copyAttempts(attempt, this.#socket, this.#target.net.port);
    this.#lost(attempt.copy, error);
  }

  /** A connection is lost. Returns whether that is dealt with here, as it is if it was pending. */
  #lost(copy: Copy, error: ConnectionError | undefined): boolean {
    const { flow } = this;
    if (flow.tx.copies[copy] !== 'pending') {
      if (copy === REPLICA) this.#report.lost();
      return false;
    }
    if (this.#socket.connecting && this.#beginsAgain(copy, error)) return true;
    if (copy === REPLICA && !isShortage(error)) this.#report.unreachable(error?.code === 'ECONNREFUSED');
    if (copy === PRIMARY && error !== undefined)
      this.#connectError = this.#choosesPort ? withoutLocal(error) : error;
    this.#lose(copy);
    if (copy === PRIMARY && flow.tx.copies[REPLICA] === 'pending') {
      // A refused first port ends the flow, as with net, whoever may listen on the second.
      if (error?.code === 'ECONNREFUSED') {
        this.#hedge?.stop();
        this.#giveUp(REPLICA);
        return true;
      }
      this.#hurrySecond();
    }
    this.#settle();
    if (!this.#noneLeft() && !this.#socket.connecting) flow.poke();
    return true;
  }

  #lose(copy: Copy): void {
    this.flow.tx.lose(copy);
    this.flow.rx.lose(copy);
  }

  /** The application leaves the source port to us. */
  get #choosesPort(): boolean {
    return this.#target.net.localPort === undefined;
  }

  /**
   * Begins again if the source port is taken, and goes on with one connection if no port is free or
   * this host is short of something else. Returns whether it did.
   */
  #beginsAgain(copy: Copy, error: ConnectionError | undefined): boolean {
    const isTaken = isCollision(error) && this.#choosesPort;
    if (isTaken && this.#retries < PORT_ATTEMPTS) {
      counters.portRetries++;
      this.#retries++;
      this.#events.beginAgain();
      this.#restart();
      return true;
    }
    // Resources of the second connection are free for the first again.
    const helps = isShortage(error) && this.#attempts[REPLICA] !== undefined;
    if (copy === REPLICA || !(isTaken || helps)) return false;
    this.#goPlain();
    return true;
  }

  /** The first has failed: a second that waits for its delay or an address begins now, or never. */
  #hurrySecond(): void {
    if (this.#attempts[REPLICA] !== undefined || this.flow.legs[REPLICA] !== undefined) return;
    this.#hedge?.stop();
    const { address } = this.#destination;
    if (address !== undefined) this.#connectReplica(address);
    else this.#lose(REPLICA);
  }

  /** No source port of ours is free: net leaves the choice to the system, which may know one. */
  #goPlain(): void {
    this.#discard();
    const net = { ...this.#target.net, ...this.#destination.options };
    dialPlain(this.#socket, { ...this.#target, net }, { again: true });
  }

  /** Ends the flow, of which nothing has been sent yet. */
  #discard(): void {
    this.#stopTimers();
    for (const copy of COPIES) this.copyAbandoned(copy);
    this.flow.client = undefined;
    this.flow.close(false);
  }

  #restart(): void {
    this.#discard();
    this.flow = this.#newFlow();
    this.#connectBoth();
  }

  attemptEvent(attempt: Attempt, event: string, args: unknown[]): void {
    if (attempt.copy !== PRIMARY) return;
    if (this.#events.isNew(event)) {
      const last = args.at(-1);
      if (event === 'connectionAttemptFailed' && last instanceof Error && this.#choosesPort)
        withoutLocal(last);
      this.#socket.emit(event, ...args);
    }
    if (event !== 'lookup' || this.#socket.destroyed) return;
    this.#startTime = performance.now();
    const { address } = this.#destination;
    if (address !== undefined || !this.#destination.resolved(args[0], args[1])) return;
    if (this.#hedge === undefined) this.#connectReplica(this.#destination.address as Address);
  }

  handOver(): boolean {
    const handle = this.flow.release();
    if (handle === undefined) return false;
    this.#stopTimers();
    becomeNative(this.#socket, handle);
    return true;
  }

  closed(reset: boolean): void {
    this.#stopTimers();
    this.flow.close(reset);
  }

  *connections(): Iterable<Connection> {
    for (const copy of COPIES) {
      const connection = this.#attempts[copy] ?? this.flow.legs[copy];
      if (connection !== undefined) yield connection;
    }
    yield* this.flow.receiver.waits();
  }

  peername(): object {
    const leg = this.flow.leg;
    if (leg === undefined) return {};
    return { address: leg.remoteAddress, family: leg.remoteFamily, port: this.#target.net.port };
  }

  sockname(): object {
    const leg = this.flow.leg;
    if (leg === undefined) return {};
    return { address: leg.localAddress, family: leg.localFamily, port: leg.localPort };
  }
}
