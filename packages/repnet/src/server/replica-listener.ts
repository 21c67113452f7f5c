/**
 * The second port of a server, and what is done with the connections to both: by its hello each
 * goes to be paired (pairing.ts), to the application as a plain one (plain-connections.ts), or is
 * turned away.
 */
import type * as net from 'node:net';
import type { Leg } from '../flow/leg.js';
import { PRIMARY, REPLICA } from '../flow/machine.js';
import { isScarce } from '../memory/budget.js';
import type { Handle } from '../net-internals.js';
import { defaults, isEnabled, replicationOptions } from '../options.js';
import type { Inner } from '../socket-internals.js';
import { counters } from '../stats.js';
import { comparableAddress, type Hello, HelloFlag, isLaterHello, Kind } from '../wire.js';
import { Answers } from './answers.js';
import { Greeter } from './greeter.js';
import { PlainClients } from './hosts.js';
import { Limits } from './limits.js';
import { keyOf, Origins, sameSource } from './origins.js';
import { Pairing } from './pairing.js';
import { PlainConnections } from './plain-connections.js';
import { type Bound, type ListenBeside, SecondServer } from './second-server.js';
import { type Internals, kOptions, type TcpHandle } from './server-internals.js';
import { Sockets } from './sockets.js';

/** The address of a peer, as a native handle reports it. */
export interface Peername {
  address?: string;
  port?: number;
}

/** Connections to the second port that have not said hello yet, at most. */
const MOST_SILENT = 1024;
/**
 * Milliseconds for which they are kept, if there is room: the winner of a race, whose hello may be
 * lost several times, is its flow's only connection.
 */
const SILENCE = 60_000;

export class ReplicaListener {
  readonly server: SecondServer;
  readonly #owner: Internals;
  readonly #greeter: Greeter;
  readonly #limits: Limits;
  readonly #plain = new PlainClients();
  #port = 0;
  /** The waiting list is cleared: second connections are refused. */
  #closing = false;
  readonly #sockets: Sockets;
  readonly #answers: Answers;
  readonly #pairing: Pairing;
  readonly #plainConnections: PlainConnections;

  constructor(owner: Internals) {
    this.#owner = owner;
    const replication = replicationOptions(owner[kOptions], undefined, 0);
    const port = () => this.#port;
    const origins = new Origins(owner);
    this.#limits = new Limits(owner, port);
    this.#sockets = new Sockets(owner);
    this.#answers = new Answers(owner, replication, origins.known);
    const parts = { owner, port, limits: this.#limits, sockets: this.#sockets, answers: this.#answers };
    this.#pairing = new Pairing({
      ...parts,
      replication,
      origins,
      plain: this.#plain,
      secondComes: ({ remoteAddress, remotePort }) => this.#greeter.awaits(remoteAddress, remotePort),
    });
    this.#plainConnections = new PlainConnections(parts);
    this.#greeter = new Greeter(
      { copy: REPLICA, most: MOST_SILENT, timeout: defaults.waitTimeout, patience: SILENCE },
      (leg, hello, rest, late) => this.#greeted(leg, hello, rest, late),
      (leg, bytes) => this.#ungreeted(leg, bytes),
    );
    this.server = new SecondServer((handle) => this.#greet(handle));
  }

  /**
   * The first port is there. False: the second is known to have failed; `failed` will be called.
   */
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
      if (this.#plain.second()) this.#pairing.miss();
      const leg = this.#greeter.accept(connection);
      if (this.#owner.keepAlive) leg.setKeepAlive(true, this.#owner.keepAliveInitialDelay);
      this.#sockets.make();
    };
  }

  /**
   * What has been accepted is kept, as by net: the winner of a race that has not said its hello yet
   * is its flow's only connection. True: there is such, and `drained` will be called.
   */
  close(drained: () => void): boolean {
    this.#closing = true;
    this.server.close();
    this.#pairing.clear();
    return this.#greeter.drain(drained);
  }

  // ----------------------------------------------------------------- connections to the first port

  /** A connection to the first port, of which nothing more need be known than net knows. */
  passesBy(): boolean {
    if (!this.#plain.pass() || this.#pairing.awaits) return false;
    counters.flowsAccepted++;
    return true;
  }

  /** Returns the source of a connection; undefined if the connection is no new flow of its own. */
  arrive(connection: Handle): Peername | undefined {
    const peer: Peername = {};
    if (connection.getpeername(peer) !== 0) {
      if (!this.#pairing.awaits) return peer;
      this.#pairing.dropLost(connection);
      return undefined;
    }
    if (this.#pairing.awaits && this.#pairing.takes(connection, peer.address, peer.port)) return undefined;
    return peer;
  }

  /**
   * False: the connection belongs to a flow there is, or to one that is over, and the application
   * hears nothing of it.
   */
  acceptPrimary(socket: Inner, address = socket.remoteAddress, port = socket.remotePort): boolean {
    return this.#pairing.acceptPrimary(socket, address, port);
  }

  /** net has dropped a connection to the first port. False: that its flow was is told already. */
  primaryDropped({ remoteAddress, remotePort }: net.DropArgument): boolean {
    return this.#limits.tellsDrop(keyOf(remoteAddress, remotePort), PRIMARY);
  }

  // ------------------------------------------------------------------ hellos

  /**
   * Limits and switches come after the hello: whatever is refused, its bytes never are taken for an
   * application's.
   */
  #greeted(leg: Leg, hello: Hello, rest: Buffer | undefined, late = false): void {
    switch (hello.kind) {
      case Kind.probe:
        return this.#answers.only(
          leg,
          isEnabled() ? 'none' : 'disabled',
          hello,
          this.#asksBeside(leg, hello),
        );
      case Kind.prove:
        return this.#prove(leg, hello, rest);
      case Kind.raw:
        // For another service, which was at this port before, or whose first port has ours for its
        // successor.
        if (!this.#answers.isOurs(hello.targetPort)) return this.#answers.drop(leg, 'mismatch');
        return this.#plainConnections.accept(leg, rest);
      case Kind.replica:
        // The application has taken the hello on the first connection for a client's bytes.
        if ((hello.flags & HelloFlag.token) !== 0) return this.#answers.refuse(leg, 'mismatch', hello);
        if (this.#closing) return this.#answers.refuse(leg, 'unknown', hello);
        // Its flow may be forgotten by now, and its client has given it up.
        if (late) return this.#answers.refuse(leg, 'late', hello);
        if (!isEnabled()) return this.#answers.refuse(leg, 'disabled', hello);
        if (isScarce(leg.fd)) return this.#answers.refuse(leg, 'limit', hello);
        if (!sameSource(leg, hello)) return this.#answers.refuse(leg, 'mismatch', hello);
        return this.#pairing.place(leg, hello, rest);
      default:
        return this.#answers.refuse(leg, 'version', hello);
    }
  }

  /**
   * The question comes from the client of a first connection that this process has accepted: the
   * two ports are of one server.
   */
  #asksBeside(leg: Leg, { flags, sourceAddress, sourcePort }: Hello): boolean {
    if ((flags & HelloFlag.beside) === 0 || sourceAddress !== comparableAddress(leg.remoteAddress))
      return false;
    return this.#pairing.hasFirst(keyOf(leg.remoteAddress, sourcePort));
  }

  /**
   * Tells whose this port is, and awaits the hello that makes the connection the winner of its
   * race.
   */
  #prove(leg: Leg, hello: Hello, rest: Buffer | undefined): void {
    if (!this.#answers.isOurs(hello.targetPort)) return this.#answers.refuse(leg, 'mismatch', hello);
    if (!isEnabled()) return this.#answers.refuse(leg, 'disabled', hello);
    leg.send([this.#answers.answer('none', hello, true)], () => {});
    if (leg.lost) return;
    this.#greeter.expect(leg);
    if (rest !== undefined) leg.receive(rest);
  }

  /**
   * A client that speaks a later form only is told, so that it goes on without a copy, or asks as
   * this version does.
   */
  #ungreeted(leg: Leg, bytes: Buffer | undefined): void {
    if (bytes !== undefined && isLaterHello(bytes)) this.#answers.refuse(leg, 'version', undefined);
    else this.#answers.drop(leg);
  }
}
