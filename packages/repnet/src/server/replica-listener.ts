/**
 * The second port of a server, and the pairing: which connection begins a flow, which joins one, and which is refused.
 */
import type net from 'node:net';
import type { Flow } from '../flow/flow.js';
import { Leg, nobody } from '../flow/leg.js';
import { PRIMARY, REPLICA } from '../flow/machine.js';
import { type Entry, WaitingList } from '../memory/waiting.js';
import { applySettings, giveHandle, type Handle, takeHandle, tellOwnPort } from '../net-internals.js';
import { defaults, isEnabled, type Replication, replicationOptions } from '../options.js';
import { attach, attachment, type Inner, setRace, setSkew } from '../socket-internals.js';
import { counters } from '../stats.js';
import { comparableAddress, HELLO_BYTES, type Hello, HelloFlag, isLaterHello, Kind } from '../wire.js';
import { Accepted } from './accept.js';
import { Answers } from './answers.js';
import { Greeter } from './greeter.js';
import { noteHello } from './hosts.js';
import { LateHello } from './late-hello.js';
import { Limits } from './limits.js';
import { comparableTarget, keyOf, sameSource } from './pair-keys.js';
import { PlainClients } from './plain-clients.js';
import { Preambles } from './preambles.js';
import { Remains } from './remains.js';
import { type Bound, type ListenBeside, SecondServer } from './second-server.js';
import { type Internals, kOptions, kShared, type TcpHandle } from './server-internals.js';
import { Sockets } from './sockets.js';
import { Unread } from './unread.js';

/** As a native handle tells it. */
export interface Peername {
  address?: string;
  port?: number;
}

/** A socket that the application has already, and whether it reads from it. */
interface Had {
  socket: Inner;
  reads: boolean;
}

interface HeldReplica {
  leg: Leg;
  hello: Hello;
  rest: Buffer | undefined;
}

/** Connections to the second port that have not said hello yet, at most. */
const MOST_SILENT = 1024;

export class ReplicaListener {
  readonly server: SecondServer;
  readonly #owner: Internals;
  readonly #replication: Replication;
  readonly #waiting: WaitingList<Accepted | Remains>;
  /** Replicas whose first connection has to come before they may take part. */
  readonly #held: WaitingList<HeldReplica>;
  readonly #greeter: Greeter;
  /** Pairing by token: reads the preamble of connections to the first port. */
  readonly #preambles: Preambles | undefined;
  readonly #secondComes = ({ remoteAddress, remotePort }: Inner): boolean =>
    this.#greeter.awaits(remoteAddress, remotePort);
  readonly #limits: Limits;
  readonly #plain = new PlainClients();
  readonly #addresses: Set<string>;
  #port = 0;
  /** Which flows there are is not known any more. */
  #closing = false;
  readonly #sockets: Sockets;
  readonly #answers: Answers;

  constructor(owner: Internals) {
    this.#owner = owner;
    this.#replication = replicationOptions(owner[kOptions], undefined, 0);
    this.#addresses = new Set(owner[kOptions].addresses?.map(comparableTarget));
    this.#limits = new Limits(owner, () => this.#port);
    this.#sockets = new Sockets(owner);
    this.#answers = new Answers(owner, this.#replication, this.#addresses);
    const options = { timeout: defaults.waitTimeout, entries: defaults.waitEntries };
    this.#waiting = new WaitingList<Accepted | Remains>(
      { ...options, recurring: !this.byToken },
      (entry) => entry.flow?.waitOver(),
      (flow) => (flow instanceof Accepted ? flow.blank : undefined),
    );
    this.#held = new WaitingList<HeldReplica>({ ...options, entries: 1024 }, (entry) => {
      if (entry.flow !== undefined) this.#answers.refuse(entry.flow.leg, 'unknown', entry.flow.hello);
    });
    this.#greeter = new Greeter(
      { copy: REPLICA, most: MOST_SILENT, timeout: defaults.waitTimeout },
      (leg, hello, rest) => this.#greeted(leg, hello, rest),
      (leg, bytes) => this.#ungreeted(leg, bytes),
    );
    if (this.byToken)
      this.#preambles = new Preambles({
        greeted: (leg, hello, rest) => this.#greeted(leg, hello, rest),
        plain: (leg, bytes) => this.#acceptPlain(leg, bytes, 0),
        broken: (leg) => this.#answers.drop(leg),
        later: (leg) => this.#answers.refuse(leg, 'version', undefined),
      });
    this.server = new SecondServer((handle) => this.#greet(handle));
  }

  /** The first port is there. False: the second is known to have failed; `failed` will be called. */
  listen(bound: Bound, how: ListenBeside, failed: (error: Error) => void): boolean {
    this.#port = bound.port;
    this.#answers.listensOn(bound.port);
    return this.server.listenBeside(bound, this.#owner[kOptions].replicaPort, how, failed);
  }

  /** Connections to the second port are legs from the start; the application never sees them. */
  #greet(handle: TcpHandle): void {
    handle.onconnection = (error, connection) => {
      // Out of descriptors: the first port says so; here a flow only goes without its copy.
      if (error || this.#limits.blocks(connection)) return;
      // Which flows there are is not known of those whose first connection was passed by.
      if (this.#plain.second()) this.#waiting.miss();
      const leg = this.#greeter.accept(connection);
      if (this.#owner.keepAlive) leg.setKeepAlive(true, this.#owner.keepAliveInitialDelay);
      this.#sockets.make();
    };
  }

  /**
   * What has been accepted is kept, as by net: the winner of a race that has not said its hello yet is its flow's only connection. True:
   * there is such, and `drained` will be called.
   */
  close(drained: () => void): boolean {
    this.#closing = true;
    this.server.close();
    this.#held.clear();
    this.#waiting.clear();
    let open = 0;
    const one = () => --open === 0 && drained();
    for (const each of [this.#greeter, this.#preambles]) if (each?.drain(one)) open++;
    return open > 0;
  }

  // ------------------------------------------------------------------ arrivals

  get byToken(): boolean {
    return this.#replication.pairing === 'token';
  }

  /** Pairing by token: what the connection to the first port is depends on what it says, and what is done with it on that. */
  arriveByToken(connection: Handle): void {
    if (!this.#limits.blocks(connection)) this.#preambles?.accept(connection);
  }

  /** A connection to the first port, of which nothing more need be known than net knows. */
  passesBy(): boolean {
    if (this.byToken || !this.#plain.pass() || this.#waiting.awaits) return false;
    counters.flowsAccepted++;
    return true;
  }

  /** Where the connection comes from; undefined: it is not a new flow of its own. */
  arrive(connection: Handle): Peername | undefined {
    const peer: Peername = {};
    if (connection.getpeername(peer) !== 0) {
      if (!this.#waiting.awaits) return peer;
      this.#dropLost(connection);
      return undefined;
    }
    if (!this.#waiting.awaits) return peer;
    // The first of a flow that began with its second, or of one that is over.
    const known = this.#waiting.awaited(keyOf(peer.address, peer.port));
    if (known === undefined) return peer;
    this.#join(known, connection);
    return undefined;
  }

  /**
   * Of a connection that was reset before it was accepted the system no longer knows where it came from. It may be the first of a
   * flow that began with its second, which is told of that one alone, so nobody is told of it.
   */
  #dropLost(connection: Handle): void {
    counters.lateTwins++;
    connection.close();
  }

  /** The entry of a flow that began with its second connection, and now a first from the same place. */
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

  /** False: the connection belongs to a flow there is, or to one that is over, and the application hears nothing of it. */
  acceptPrimary(socket: Inner, address = socket.remoteAddress, port = socket.remotePort): boolean {
    if (this.byToken) return true;
    if (address === undefined) {
      if (this.#waiting.awaits) {
        this.#dropLost(this.#sockets.withdraw(socket));
        return false;
      }
      // Not listed, since it cannot be: its second connection, should there be one, must not begin it again.
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
      // Not listed: a second connection of it that comes when the switch is turned back must not begin it again.
      this.#waiting.miss();
      return true;
    }
    const accepted = new Accepted(socket, this.#replication, this.#port, this.#secondComes);
    counters.flowsAccepted++;
    attach(socket, accepted);
    this.#list(key, 'primary', accepted);
    const held = this.#held.waiting(key);
    if (held?.flow !== undefined) {
      const { leg, hello, rest } = held.flow;
      this.#held.settle(held, 'paired');
      // The application gets the socket first, then what the replica has brought.
      queueMicrotask(() => this.#place(leg, hello, rest, key));
    }
    return true;
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

  /** Limits and switches come after the hello: whatever is refused, its bytes never are taken for an application's. */
  #greeted(leg: Leg, hello: Hello, rest: Buffer | undefined): void {
    if (this.byToken) noteHello(leg.remoteAddress);
    switch (hello.kind) {
      case Kind.probe:
        return this.#answers.only(leg, isEnabled() ? 'none' : 'disabled', hello);
      case Kind.raw:
        // For another service, which was at this port before, or whose first port has ours for its successor.
        if (leg.copy === PRIMARY || !this.#answers.isOurs(hello.targetPort))
          return this.#answers.drop(leg, 'mismatch');
        return this.#acceptPlain(leg, rest, HELLO_BYTES);
      case Kind.primary:
      case Kind.replica: {
        const byToken = (hello.flags & HelloFlag.token) !== 0;
        if (byToken !== this.byToken) return this.#answers.refuse(leg, 'mismatch', hello);
        if (this.#closing && hello.kind === Kind.replica) return this.#answers.refuse(leg, 'unknown', hello);
        if ((hello.kind === Kind.primary) !== (leg.copy === PRIMARY))
          return this.#answers.refuse(leg, 'mismatch', hello);
        if (byToken) return this.#placeByToken(leg, hello, rest);
        if (!isEnabled()) return this.#answers.refuse(leg, 'disabled', hello);
        if (!sameSource(leg, hello)) return this.#answers.refuse(leg, 'mismatch', hello);
        return this.#place(leg, hello, rest, keyOf(leg.remoteAddress, leg.remotePort));
      }
      default:
        return this.#answers.refuse(leg, 'version', hello);
    }
  }

  /** A client that speaks a later form only is told, so that it goes on without a copy, or asks as this version does. */
  #ungreeted(leg: Leg, bytes: Buffer | undefined): void {
    if (bytes !== undefined && isLaterHello(bytes)) this.#answers.refuse(leg, 'version', undefined);
    else this.#answers.drop(leg);
  }

  #place(leg: Leg, hello: Hello, rest: Buffer | undefined, key: string): void {
    if (leg.lost) return;
    const known = this.#waiting.get(key);
    if (known !== undefined && known.first === 'primary' && !this.#waiting.isOther(known, hello)) {
      const waiting = known.flow;
      if (known.state !== 'waiting' || waiting === undefined || !waiting.joinable) {
        counters.lateTwins++;
        return this.#answers.refuse(leg, 'late', hello);
      }
      this.#waiting.settle(known, 'paired', hello);
      if (waiting instanceof Remains) return waiting.serve(leg, this.#answers.answer('none', hello), rest);
      leg.ref();
      waiting.pair(leg, hello, this.#answers.answer('none', hello), rest);
      return;
    }
    if (!this.#mayBegin(leg, hello)) {
      if (known === undefined && this.#plain.mayHavePassed(hello.patience))
        return this.#answers.refuse(leg, 'unknown', hello);
      return this.#hold(key, 'replica', { leg, hello, rest });
    }
    this.#begin(leg, hello, rest, key);
  }

  /** What the connection still brings waits in the kernel for the flow that will read it. */
  #hold(key: string, came: 'primary' | 'replica', held: HeldReplica): void {
    held.leg.stopped = true;
    this.#held.add(key, came, held);
  }

  /**
   * The token names the flow. The connection that was established first says so and starts it; the other joins it in this
   * process or nowhere, and may come first only where no other process can have the flow.
   */
  #placeByToken(leg: Leg, hello: Hello, rest: Buffer | undefined, had?: Had): void {
    if (leg.lost) return;
    const key = hello.token.toString('latin1');
    const known = this.#waiting.get(key);
    if (known !== undefined) {
      const waiting = known.flow;
      const came = known.first === 'primary' ? PRIMARY : REPLICA;
      if (known.state !== 'waiting' || waiting === undefined || !waiting.joinable || came === leg.copy) {
        counters.lateTwins++;
        return this.#answers.refuse(leg, 'late', hello);
      }
      // Switched off: a flow is carried by the connection that began it.
      if (!isEnabled()) return this.#answers.refuse(leg, 'disabled', hello);
      this.#waiting.settle(known, 'paired');
      if (waiting instanceof Remains) return waiting.serve(leg, this.#answers.answer('none', hello), rest);
      leg.ref();
      waiting.complete(leg, hello, this.#answers.answer('none', hello), rest);
      return;
    }
    if ((hello.flags & HelloFlag.origin) === 0 && !this.#mayBegin(leg, hello))
      return this.#hold(key, leg.copy === PRIMARY ? 'primary' : 'replica', { leg, hello, rest });
    if (had === undefined) this.#begin(leg, hello, rest, key);
    else {
      const flow = this.#enter(had.socket, leg, hello, key);
      if (had.reads) flow.resume();
      if (rest !== undefined && had.reads) leg.receive(rest);
      else if (!had.reads) flow.receiver.pause(leg, rest);
    }
    const held = this.#held.waiting(key);
    if (held?.flow === undefined) return;
    const other = held.flow;
    this.#held.settle(held, 'paired');
    this.#placeByToken(other.leg, other.hello, other.rest);
  }

  /**
   * A replica may start a flow only where its first connection can come to nobody else: not if other processes accept on
   * the address, nor if the client dialled another address than ours (translation, a balancer), nor if a flow of the same
   * client may have been forgotten, as patient as it says it is. That it dialled ours shows that much, unless we are told otherwise: a balancer may
   * leave the address alone.
   */
  #mayBegin(leg: Leg, hello: Hello): boolean {
    if (this.#owner[kShared] || !this.#waiting.covers(hello.patience)) return false;
    if (this.#addresses.has(`${hello.targetAddress}:${hello.targetPort}`)) return true;
    if (this.#owner[kOptions].addresses?.length === 0) return false;
    return hello.targetPort === this.#port && hello.targetAddress === comparableAddress(leg.localAddress);
  }

  #begin(leg: Leg, hello: Hello, rest: Buffer | undefined, key: string): void {
    if (this.#limits.full(leg, key)) return this.#answers.refuse(leg, 'limit', hello);
    const owner = this.#owner;
    const socket = this.#sockets.take();
    counters.flowsAccepted++;
    const flow = this.#enter(socket, leg, hello, key);
    this.#sockets.announce(socket);
    if (owner.pauseOnConnect) flow.receiver.pause(leg, rest);
    else if (rest !== undefined && !leg.lost) leg.receive(rest);
  }

  #enter(socket: Inner, leg: Leg, hello: Hello, key: string): Flow {
    const accepted = new Accepted(socket, this.#replication, this.#port, this.#secondComes);
    attach(socket, accepted);
    this.#list(key, leg.copy === PRIMARY ? 'primary' : 'replica', accepted, hello);
    leg.ref();
    return accepted.begin(leg, hello, this.#answers.answer('none', hello));
  }

  /** A plain connection like any other: the winner of a RepSYN race, or a plain client of a server that pairs by token. */
  #acceptPlain(leg: Leg, rest: Buffer | undefined, skew: number): void {
    if (leg.lost) return;
    if (this.#limits.full(leg)) {
      // Its client expects the application's bytes and nothing else.
      this.#answers.count(leg, 'limit');
      leg.close();
      return;
    }
    const handle = leg.release();
    const owner = this.#owner;
    if (owner.pauseOnConnect && (rest !== undefined || skew > 0)) {
      handle.reading = false;
      handle.readStop();
    }
    const socket = this.#sockets.take();
    tellOwnPort(handle, this.#port);
    giveHandle(handle, socket);
    applySettings(socket, handle);
    setSkew(socket, skew, 0);
    if (skew > 0) setRace(socket, 'open');
    socket.ref();
    if (owner.pauseOnConnect) Object.assign(socket, { readableFlowing: false });
    counters.flowsAccepted++;
    if (rest !== undefined) {
      if (owner.pauseOnConnect) attach(socket, new Unread(socket, rest.length));
      socket.push(rest);
    } else if (skew === 0)
      new LateHello(
        socket,
        defaults.waitTimeout,
        (late, more) => this.#greetedLate(socket, late, more),
        () => this.#dropSilent(socket),
      );
    this.#sockets.announce(socket);
  }

  /** The application has the connection already, and takes it for a plain client's. */
  #greetedLate(socket: Inner, hello: Hello, rest: Buffer | undefined): void {
    noteHello(socket.remoteAddress);
    const joins = hello.kind === Kind.primary && (hello.flags & HelloFlag.token) !== 0;
    // What the application has said to it would be taken for our answer.
    if (!joins || socket.bytesWritten > 0 || socket.writableEnded) return this.#dropSilent(socket);
    const handle = takeHandle(socket);
    const reads = handle.reading === true;
    setSkew(socket, 0, 0);
    const leg = new Leg(PRIMARY, nobody, handle, true).unref();
    this.#placeByToken(leg, hello, rest, { socket, reads });
    // Its flow began with the second connection, or does not begin here.
    if (attachment(socket) === undefined) socket.destroy();
  }

  #dropSilent(socket: Inner): void {
    this.#answers.count(socket, 'hello');
    socket.resetAndDestroy();
  }

  /** net has dropped a connection to the first port. False: that its flow was is told already. */
  primaryDropped({ remoteAddress, remotePort }: net.DropArgument): boolean {
    return this.#limits.tellsDrop(keyOf(remoteAddress, remotePort), PRIMARY);
  }
}
