/**
 * Pairing: decides which connection begins a flow, joins one, waits for its first, or is refused.
 */
import { Leg } from '../flow/leg.js';
import { PRIMARY } from '../flow/machine.js';
import { type Entry, WaitingList } from '../memory/waiting.js';
import type { Handle } from '../net-internals.js';
import { defaults, isEnabled, type Replication } from '../options.js';
import { attach, type Inner } from '../socket-internals.js';
import { counters } from '../stats.js';
import { AnswerFlag, type Hello } from '../wire.js';
import { Accepted } from './accept.js';
import type { Answers } from './answers.js';
import type { PlainClients } from './hosts.js';
import type { Limits } from './limits.js';
import { keyOf, type Origins } from './origins.js';
import { Remains } from './remains.js';
import type { Internals } from './server-internals.js';
import type { Sockets } from './sockets.js';

interface HeldReplica {
  leg: Leg;
  hello: Hello;
  rest: Buffer | undefined;
}

/** The parts of a server on which pairing relies. */
export interface PairingParts {
  owner: Internals;
  replication: Replication;
  /** The first port, once there is one. */
  port: () => number;
  limits: Limits;
  sockets: Sockets;
  answers: Answers;
  origins: Origins;
  plain: PlainClients;
  /**
   * Returns whether a second connection of this first one is there, and has not said its hello yet.
   */
  secondComes: (first: Inner) => boolean;
}

export class Pairing {
  readonly #parts: PairingParts;
  readonly #answers: Answers;
  readonly #sockets: Sockets;
  readonly #waiting: WaitingList<Accepted | Remains>;
  /** Second connections that must not take part before their first has come. */
  readonly #held: WaitingList<HeldReplica>;

  constructor(parts: PairingParts) {
    this.#parts = parts;
    this.#answers = parts.answers;
    this.#sockets = parts.sockets;
    const options = { timeout: defaults.waitTimeout, entries: defaults.waitEntries };
    this.#waiting = new WaitingList<Accepted | Remains>(
      options,
      (entry) => entry.flow?.waitOver(),
      (flow) => flow instanceof Accepted && flow.blank,
    );
    this.#held = new WaitingList<HeldReplica>({ ...options, entries: 1024 }, (entry) => {
      if (entry.flow !== undefined) this.#answers.refuse(entry.flow.leg, 'unknown', entry.flow.hello);
    });
  }

  /** Returns whether a flow waits for its first connection. */
  get awaits(): boolean {
    return this.#waiting.awaits;
  }

  /** First connections have begun flows that are not on the list. */
  miss(): void {
    this.#waiting.miss();
  }

  /** Returns whether the first connection of the flow is in this process. */
  hasFirst(key: string): boolean {
    const known = this.#waiting.get(key);
    return known?.first === 'primary' || known?.state === 'paired';
  }

  /** Ends every wait. */
  clear(): void {
    this.#held.clear();
    this.#waiting.clear();
  }

  // ------------------------------------------------------------------ first connections

  /** Takes a connection that begins no flow. Returns false if it begins one. */
  takes(connection: Handle, address: string | undefined, port: number | undefined): boolean {
    // The first connection of a flow that began with its second, or of one that is over.
    const known = this.#waiting.awaited(keyOf(address, port));
    if (known !== undefined) this.#join(known, connection);
    return known !== undefined;
  }

  /**
   * Takes a connection that was reset before it was accepted. The system no longer knows where it
   * came from. It may be the first of a flow that began with its second, of which the application
   * has heard: so it hears nothing of this one.
   */
  dropLost(connection: Handle): void {
    counters.lateTwins++;
    connection.close();
  }

  /** Joins a first connection to the flow of an entry, which began with its second. */
  #join(known: Entry<Accepted | Remains>, handle: Handle): void {
    if (known.state === 'waiting' && known.flow?.joinable) {
      const waiting = known.flow;
      this.#waiting.settle(known, 'paired');
      if (waiting instanceof Accepted) waiting.join(handle);
      else waiting.serve(new Leg(PRIMARY, waiting, handle), undefined, undefined);
      return;
    }
    counters.lateTwins++;
    handle.reset();
  }

  /**
   * Returns false if the connection belongs to a flow that exists, or is over: the application
   * hears nothing of it.
   */
  acceptPrimary(socket: Inner, address: string | undefined, port: number | undefined): boolean {
    if (address === undefined) {
      if (this.#waiting.awaits) {
        this.dropLost(this.#sockets.withdraw(socket));
        return false;
      }
      // The flow cannot be listed: its second connection, should there be one, must not begin it
      // again.
      this.#waiting.miss();
      return true;
    }
    const key = keyOf(address, port);
    const known = this.#waiting.awaited(key);
    if (known !== undefined) {
      this.#join(known, this.#sockets.withdraw(socket));
      return false;
    }
    if (!isEnabled()) {
      // The flow is not listed: its second connection must not begin it again when the switch is
      // turned back.
      this.#waiting.miss();
      return true;
    }
    counters.flowsAccepted++;
    this.#list(key, 'primary', this.#accepted(socket));
    const held = this.#takeHeld(key);
    // The application gets the socket first, then what the replica has brought.
    if (held !== undefined) queueMicrotask(() => this.place(held.leg, held.hello, held.rest));
    return true;
  }

  #accepted(socket: Inner): Accepted {
    const { replication, port, secondComes } = this.#parts;
    const accepted = new Accepted(socket, replication, port(), secondComes);
    attach(socket, accepted);
    return accepted;
  }

  #list(key: string, first: 'primary' | 'replica', accepted: Accepted, hello?: Hello): void {
    const entry = this.#waiting.add(key, first, accepted, hello);
    accepted.entry = entry;
    accepted.onClosed = (remains) => {
      if (entry.state !== 'waiting') remains?.waitOver();
      else if (remains === undefined) this.#waiting.settle(entry, 'over');
      else entry.flow = remains;
    };
  }

  // -------------------------------------------------------------- connections that have said hello

  /**
   * Places a second connection: it joins its flow, begins it, waits for its first connection, or is
   * refused.
   */
  place(leg: Leg, hello: Hello, rest: Buffer | undefined): void {
    if (leg.lost) return;
    const key = keyOf(leg.remoteAddress, leg.remotePort);
    const known = this.#waiting.get(key);
    if (known !== undefined && known.first === 'primary' && !this.#waiting.isOther(known, hello)) {
      const waiting = known.flow;
      // Another flow may have the port of a closed one by now, and must not get its reply.
      const over = waiting instanceof Remains && this.#waiting.outlasts(known, hello);
      if (known.state !== 'waiting' || waiting === undefined || !waiting.joinable || over) {
        counters.lateTwins++;
        return this.#answers.refuse(leg, 'late', hello);
      }
      this.#waiting.settle(known, 'paired', hello);
      const joined = this.#answers.answer('none', hello, true, AnswerFlag.joined);
      if (waiting instanceof Remains) return waiting.serve(leg, joined, rest);
      leg.ref();
      waiting.pair(leg, hello, joined, rest);
      return;
    }
    if (!this.#mayBegin(leg, hello)) {
      if (known === undefined && this.#parts.plain.mayHavePassed(hello.patience))
        return this.#answers.refuse(leg, 'unknown', hello);
      return this.#hold(key, { leg, hello, rest });
    }
    this.#begin(leg, hello, rest, key);
  }

  /**
   * Returns whether a second connection may begin a flow: if its first can come to this process
   * alone, and cannot have been forgotten for as long as its client waits.
   */
  #mayBegin(leg: Leg, hello: Hello): boolean {
    return (
      this.#waiting.covers(hello.patience) && this.#parts.origins.areOurs(leg, hello, this.#parts.port())
    );
  }

  /** Holds a second connection until its first comes; further bytes wait in the kernel. */
  #hold(key: string, held: HeldReplica): void {
    held.leg.stopped = true;
    this.#held.add(key, 'replica', held);
  }

  #takeHeld(key: string): HeldReplica | undefined {
    const entry = this.#held.waiting(key);
    if (entry?.flow === undefined) return undefined;
    const held = entry.flow;
    this.#held.settle(entry, 'paired');
    return held;
  }

  #begin(leg: Leg, hello: Hello, rest: Buffer | undefined, key: string): void {
    if (this.#parts.limits.full(leg, key)) return this.#answers.refuse(leg, 'limit', hello);
    const socket = this.#sockets.take();
    counters.flowsAccepted++;
    const accepted = this.#accepted(socket);
    this.#list(key, 'replica', accepted, hello);
    leg.ref();
    const flow = accepted.begin(leg, hello, this.#answers.answer('none', hello, true));
    this.#sockets.announce(socket);
    if (this.#parts.owner.pauseOnConnect) flow.receiver.pause(leg, rest);
    else if (rest !== undefined && !leg.lost) leg.receive(rest);
  }
}
