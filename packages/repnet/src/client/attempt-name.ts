/**
 * An attempt by a socket of net's: resolving, events and errors are net's. Several addresses race
 * (race.ts), where net would try one after the other. Only the socket's native handle is used in
 * the end.
 */
import net from 'node:net';
import { errnoOf } from '../errors.js';
import type { Copy } from '../flow/machine.js';
import {
  type ConnectRequest,
  connectFailure,
  type Handle,
  measuresNothing,
  nativeHandle,
  setNativeHandle,
  takeHandle,
  untold,
} from '../net-internals.js';
import {
  AddressAttempt,
  type Attempt,
  type AttemptOptions,
  type AttemptSink,
  isToItself,
} from './attempt.js';
import { AddressRace, type RaceOptions, type RaceSink } from './race.js';
import { type Address, type Answer, racing } from './resolution.js';

const { prototype } = net.Socket;

const refuse = () => errnoOf('ECANCELED') as number;
/**
 * Stands in for the handle of an attempt that is given up during an event of net's, which goes on
 * to connect.
 */
const refusing = {
  bind: () => 0,
  bind6: () => 0,
  connect: refuse,
  connect6: refuse,
  close: (done?: () => void) => done?.(),
} as unknown as Handle;

/** Options of a race of addresses that the options of net do not have. */
export interface RaceOf extends Pick<RaceOptions, 'delay' | 'loser' | 'early'> {
  /**
   * The application has chosen a local port or a block list, whose errors are net's: net makes each
   * attempt.
   */
  byNet: boolean;
}

/** Returns an attempt at one of the addresses of a name. */
export function oneAddress(
  copy: Copy,
  sink: AttemptSink,
  host: Address,
  options: AttemptOptions,
  { byNet }: RaceOf,
): Attempt {
  const { port, localPort } = options;
  if (!byNet)
    return new AddressAttempt(
      copy,
      sink,
      localPort === undefined ? { host, port } : { host, port, localPort },
    );
  const { lookup: _, ...rest } = options;
  return new NameAttempt(copy, sink, { ...rest, host });
}

/**
 * Returns the options of a race: those in `race`, and the port and blocked addresses in the options
 * of net.
 */
export function raceOptions(options: AttemptOptions, race: RaceOf): RaceOptions {
  const { blockList } = options as { blockList?: net.BlockList };
  const isBlocked = (address: Address) =>
    blockList?.check(address, address.includes(':') ? 'ipv6' : 'ipv4') === true;
  const { delay, loser, early } = race;
  return { delay, loser, early, port: options.port, isBlocked };
}

export class NameAttempt extends net.Socket implements Attempt, RaceSink {
  declare autoSelectFamilyAttemptedAddresses: string[];
  readonly copy: Copy;
  readonly #options: AttemptOptions;
  #sink: AttemptSink | undefined;
  /** An event is being emitted: net asserts, or needs a handle, after some of them. */
  #telling = false;
  readonly #raceOf: RaceOf | undefined;
  #race: AddressRace | undefined;
  #isUnref = false;

  /** `race`: how the addresses of a name race; if undefined, net tries one after the other. */
  constructor(copy: Copy, sink: AttemptSink, options: AttemptOptions, race?: RaceOf) {
    super(options);
    this.copy = copy;
    this.#sink = sink;
    this.#options = options;
    this.#raceOf = race;
  }

  start(): void {
    const race = this.#raceOf;
    const options =
      race === undefined
        ? this.#options
        : racing(this.#options, (answer, addresses) => this.#begin(race, answer, addresses));
    untold(this, () => this.connect(options));
  }

  /** Begins a race of the name's addresses; net's socket has done its part. */
  #begin(raceOf: RaceOf, answer: readonly Answer[], addresses: Address[]): true {
    for (const { address, family } of answer) {
      this.#sink?.attemptEvent(this, 'lookup', [null, address, family, this.#options.host]);
      if (this.#sink === undefined) return true;
    }
    prototype.destroy.call(this);
    const options = this.#options;
    const race = new AddressRace(this, addresses, raceOptions(options, raceOf), (address, sink) =>
      oneAddress(this.copy, sink, address, options, raceOf),
    );
    this.#race = race;
    this.autoSelectFamilyAttemptedAddresses = race.attempted;
    if (this.#isUnref) race.unref();
    race.start();
    return true;
  }

  raceEvent(event: string, args: unknown[]): void {
    this.#sink?.attemptEvent(this, event, args);
  }

  raceWon(_attempt: Attempt, handle: Handle): void {
    const sink = this.#sink;
    this.#sink = undefined;
    sink?.attemptOpen(this, handle);
  }

  raceFailed(error: NodeJS.ErrnoException): void {
    const sink = this.#sink;
    this.#sink = undefined;
    sink?.attemptFailed(this, error);
  }

  override ref(): this {
    this.#isUnref = false;
    this.#race?.ref();
    return super.ref();
  }

  override unref(): this {
    this.#isUnref = true;
    this.#race?.unref();
    return super.unref();
  }

  get remote(): undefined {
    return undefined;
  }

  get isEstablished(): boolean {
    if (this.#race !== undefined) return this.#race.isEstablished;
    return nativeHandle(this)?.getpeername({}) === 0;
  }

  get local() {
    if (this.#race !== undefined) return this.#race.latest?.local ?? {};
    return { address: this.localAddress, family: this.localFamily, port: this.localPort };
  }

  // biome-ignore lint/suspicious/noExplicitAny: the signature of EventEmitter
  override emit(event: string | symbol, ...args: any[]): boolean {
    switch (event) {
      case 'connect': {
        const { localPort, port } = this.#options;
        if (localPort === undefined && isToItself(nativeHandle(this) as Handle, port)) {
          const request = { address: this.remoteAddress, port: this.remotePort } as ConnectRequest;
          this.destroy(connectFailure(errnoOf('ECONNREFUSED') as number, request, () => {}));
          return true;
        }
        const sink = this.#sink;
        this.#sink = undefined;
        sink?.attemptOpen(this, takeHandle(this));
        return true;
      }
      case 'lookup':
      case 'connectionAttempt':
      case 'connectionAttemptFailed':
      case 'connectionAttemptTimeout':
        this.#telling = true;
        try {
          this.#sink?.attemptEvent(this, event, args);
        } finally {
          this.#telling = false;
        }
        return true;
      default:
        return (prototype.emit as (...a: unknown[]) => boolean).call(this, event, ...args);
    }
  }

  /** Node starts no reading when the connection is established. */
  override isPaused(): boolean {
    return true;
  }

  /** Called by Node when the connection fails. */
  override destroy(error?: Error): this {
    const sink = this.#sink;
    this.#sink = undefined;
    prototype.destroy.call(this);
    sink?.attemptFailed(this, error);
    return this;
  }

  passTo(sink: AttemptSink): void {
    if (this.#sink !== undefined) this.#sink = sink;
  }

  /**
   * Gives up the attempt. `reset`: by RST, if the kernel has established what Node still takes for
   * connecting.
   */
  abandon(reset: boolean): void {
    this.#sink = undefined;
    if (this.#race !== undefined) return this.#race.abandon(reset);
    if (this.#telling) return this.#stop();
    if (reset) {
      const handle = nativeHandle(this);
      // A handle without a descriptor cannot be reset, and a failed reset leaves a handle that
      // cannot be closed.
      if (handle !== null && (handle.fd ?? -1) >= 0) takeHandle(this).reset();
    }
    prototype.destroy.call(this);
  }

  /** Lets net connect to this address with a handle that refuses, and try no other. */
  #stop(): void {
    const handle = nativeHandle(this);
    setNativeHandle(this, refusing);
    Object.assign(this, { _aborted: true });
    handle?.close();
    process.nextTick(() => prototype.destroy.call(this));
  }
}

// Its flow does, of its own port.
measuresNothing(NameAttempt.prototype);
