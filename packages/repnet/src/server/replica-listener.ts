/**
 * The second port of a server, and the connections to both ports. By its hello a connection is
 * paired (pairing.ts), goes to the application as a plain one (plain-connections.ts), or is
 * refused.
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

/** The most connections to the second port that have not said hello. */
const MOST_SILENT = 1024;
/**
 * Milliseconds for which they are kept if there is room: the winner of a race is its flow's only
 * connection, and its hello may be lost several times.
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
   * The server listens on the first port: listens on the second. Returns false if that is known to
   * have failed; `failed` will be called.
   */
  listen(bound: Bound, how: ListenBeside, failed: (error: Error) => void): boolean {
    this.#port = bound.port;
    this.#answers.listensOn(bound.port);
    return this.server.listenBeside(bound, this.#owner[kOptions].replicaPort, how, failed);
  }

  /** Connections to the second port are legs from the start; the application never sees them. */
  #greet(handle: TcpHandle): void {
    handle.onconnection = (error, connection) => {
      // Out of descriptors: the first port reports it; here a flow only goes without its copy.
      if (error || this.#limits.blocks(connection)) return;
      // Flows whose first connection was passed by are not known.
      if (this.#plain.second()) this.#pairing.miss();
      const leg = this.#greeter.accept(connection);
      if (this.#owner.keepAlive) leg.setKeepAlive(true, this.#owner.keepAliveInitialDelay);
      this.#sockets.make();
    };
  }

  /**
   * Closes the second port, but keeps accepted connections, as net does: the winner of a race that
   * has not said hello is its flow's only connection. Returns whether there are any; `drained` is
   * called when there are none left.
   */
  close(drained: () => void): boolean {
    this.#closing = true;
    this.server.close();
    this.#pairing.clear();
    return this.#greeter.drain(drained);
  }

  // ----------------------------------------------------------------- connections to the first port

  /**
   * Counts a connection to the first port. Returns whether it need not be known any better than net
   * knows it.
   */
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
   * Returns false if the connection belongs to a flow that exists, or is over: the application
   * hears nothing of it.
   */
  acceptPrimary(socket: Inner, address = socket.remoteAddress, port = socket.remotePort): boolean {
    return this.#pairing.acceptPrimary(socket, address, port);
  }

  /**
   * net has dropped a connection to the first port. Returns false if the application has heard that
   * its flow was dropped.
   */
  primaryDropped({ remoteAddress, remotePort }: net.DropArgument): boolean {
    return this.#limits.tellsDrop(keyOf(remoteAddress, remotePort), PRIMARY);
  }

  // ------------------------------------------------------------------ hellos

  /**
   * Places a connection that has said hello. Limits and switches apply after that: no byte of a
   * refused connection is taken for an application's.
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
        // The hello is for another service, which had this port before, or whose second port this
        // is, too.
        if (!this.#answers.isOurs(hello.targetPort)) return this.#answers.drop(leg, 'mismatch');
        return this.#plainConnections.accept(leg, rest);
      case Kind.replica:
        // The application has taken the hello on the first connection for a client's bytes.
        if ((hello.flags & HelloFlag.token) !== 0) return this.#answers.refuse(leg, 'mismatch', hello);
        if (this.#closing) return this.#answers.refuse(leg, 'unknown', hello);
        // The flow may be forgotten by now, and the client has given the connection up.
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
   * Returns whether the question comes from the client of a first connection that this process has
   * accepted: then one server has both ports.
   */
  #asksBeside(leg: Leg, { flags, sourceAddress, sourcePort }: Hello): boolean {
    if ((flags & HelloFlag.beside) === 0 || sourceAddress !== comparableAddress(leg.remoteAddress))
      return false;
    return this.#pairing.hasFirst(keyOf(leg.remoteAddress, sourcePort));
  }

  /**
   * Answers with the server's life, and awaits the hello that makes the connection the winner of
   * its race.
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
   * Refuses a connection without a hello. A client of a later form gets an answer, so that it goes
   * on without a copy, or asks as this version does.
   */
  #ungreeted(leg: Leg, bytes: Buffer | undefined): void {
    if (bytes !== undefined && isLaterHello(bytes)) this.#answers.refuse(leg, 'version', undefined);
    else this.#answers.drop(leg);
  }
}
