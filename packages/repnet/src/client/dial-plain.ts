/** Plain connections: net makes them, but the addresses of a name race (race.ts). */
import net from 'node:net';
import { PRIMARY } from '../flow/machine.js';
import { begun } from '../info.js';
import {
  applySettings,
  type Handle,
  keepingState,
  nativeHandle,
  takeHandle,
  untold,
} from '../net-internals.js';
import {
  attach,
  becomeNative,
  type Connection,
  type DialTarget,
  detachToConnect,
  Flowless,
  type Inner,
  isUnref,
  kRace,
  setConnecting,
} from '../socket-internals.js';
import { counters } from '../stats.js';
import type { Attempt, AttemptOptions } from './attempt.js';
import { oneAddress, type RaceOf, raceOptions } from './attempt-name.js';
import { connected, raceOf } from './dialing.js';
import { AddressRace, type RaceSink } from './race.js';
import { type Address, racing } from './resolution.js';

export interface Plain {
  /** A race or a flow has begun, is counted, and has failed. */
  again?: boolean;
  /** When the attempt at the second address may begin sooner. */
  early?: RaceOf['early'];
}

export function dialPlain(socket: Inner, target: DialTarget, { again = false, early }: Plain = {}): void {
  if (!again) {
    counters.flowsPlain++;
    begun(socket, 'plain');
  }
  socket[kRace] = undefined;
  setConnecting(socket, false);
  detachToConnect(socket);
  const { connect: netsOwn } = net.Socket.prototype as { connect(...args: unknown[]): unknown };
  const options = racing(target.net, (answer, addresses) => {
    // The socket may have been destroyed since, and may be connecting anew.
    const handle = nativeHandle(socket);
    const isCurrent = () => socket.connecting && handle !== null && nativeHandle(socket) === handle;
    if (!isCurrent()) return false;
    for (const { address, family } of answer) {
      socket.emit('lookup', null, address, family, target.net.host);
      if (!isCurrent()) return true;
    }
    takeHandle(socket).close();
    new PlainRace(socket, target, addresses, early).start();
    return true;
  });
  const connect = () => untold(socket, () => netsOwn.call(socket, options));
  if (again) keepingState(socket, connect);
  else connect();
}

/** A plain socket while the addresses of its name race. */
class PlainRace extends Flowless implements RaceSink {
  readonly native = false;
  readonly plain = true;
  readonly #socket: Inner;
  readonly #target: DialTarget;
  readonly #race: AddressRace;
  /** The second attempt began sooner than net's would, as a second connection. */
  #isDoubled = false;
  /** When the host was known, by `performance.now()`. */
  readonly #startTime = performance.now();

  constructor(socket: Inner, target: DialTarget, addresses: Address[], early: RaceOf['early']) {
    super();
    this.#socket = socket;
    this.#target = target;
    const options = target.net as AttemptOptions;
    const take = (): boolean => {
      this.#isDoubled = early?.take() === true;
      return this.#isDoubled;
    };
    const sooner = early === undefined ? undefined : { ...early, take };
    const race = { ...raceOf(target), early: sooner };
    this.#race = new AddressRace(this, addresses, raceOptions(options, race), (address, sink) =>
      oneAddress(PRIMARY, sink, address, options, race),
    );
  }

  start(): void {
    const socket = this.#socket;
    attach(socket, this);
    Object.assign(socket, { autoSelectFamilyAttemptedAddresses: this.#race.attempted });
    if (isUnref(socket)) this.#race.unref();
    this.#race.start();
  }

  raceEvent(event: string, args: unknown[]): void {
    this.#socket.emit(event, ...args);
  }

  raceWon(_attempt: Attempt, handle: Handle, order: number): void {
    const socket = this.#socket;
    if (this.#isDoubled && order > 0) counters.copiesWon++;
    applySettings(socket, handle);
    becomeNative(socket, handle);
    if (isUnref(socket)) handle.unref();
    connected(socket, this.#target, this.#startTime);
  }

  raceFailed(error: NodeJS.ErrnoException): void {
    this.#socket.destroy(error);
  }

  /** Never: a socket that is connecting has nothing to give. */
  handOver(): boolean {
    return false;
  }

  override closed(): void {
    this.#race.abandon(false);
  }

  override *connections(): Iterable<Connection> {
    yield this.#race;
  }

  override sockname(): object {
    return this.#race.latest?.local ?? {};
  }
}
