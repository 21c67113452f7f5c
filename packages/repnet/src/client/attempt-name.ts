/**
 * Connecting as net does, in every respect: resolving, choosing among addresses, its events and errors. Costs a socket, of
 * which only the native handle is used in the end.
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
import { type Attempt, type AttemptOptions, type AttemptSink, isToItself } from './attempt.js';

const { prototype } = net.Socket;

const refuse = () => errnoOf('ECANCELED') as number;
/** Stands in for the handle of an attempt that is given up while net tells of it, and goes on to connect. */
const refusing = {
  bind: () => 0,
  bind6: () => 0,
  connect: refuse,
  connect6: refuse,
  close: (done?: () => void) => done?.(),
} as unknown as Handle;

export class NameAttempt extends net.Socket implements Attempt {
  declare readonly autoSelectFamilyAttemptedAddresses: string[];
  readonly copy: Copy;
  readonly #options: AttemptOptions;
  #sink: AttemptSink | undefined;
  /** An event is being told: net asserts, or needs a handle, after some of them. */
  #telling = false;

  constructor(copy: Copy, sink: AttemptSink, options: AttemptOptions) {
    super(options);
    this.copy = copy;
    this.#sink = sink;
    this.#options = options;
  }

  start(): void {
    untold(this, () => this.connect(this.#options));
  }

  get remote(): undefined {
    return undefined;
  }

  get isEstablished(): boolean {
    return nativeHandle(this)?.getpeername({}) === 0;
  }

  get local() {
    return { address: this.localAddress, family: this.localFamily, port: this.localPort };
  }

  // biome-ignore lint/suspicious/noExplicitAny: the signature of EventEmitter
  override emit(event: string | symbol, ...args: any[]): boolean {
    switch (event) {
      case 'connect': {
        if (this.#options.localPort === undefined && isToItself(nativeHandle(this) as Handle)) {
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

  /** What Node calls when the connection fails. */
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

  /** Gives it up. `reset`: by RST, if the kernel has established what Node still takes for connecting. */
  abandon(reset: boolean): void {
    this.#sink = undefined;
    if (this.#telling) return this.#stop();
    if (reset) {
      const handle = nativeHandle(this);
      // One without a descriptor yet cannot be reset, and a reset that fails leaves a handle that cannot be closed.
      if (handle !== null && (handle.fd ?? -1) >= 0) takeHandle(this).reset();
    }
    prototype.destroy.call(this);
  }

  /** Lets net go on to connect with a handle that refuses, to this address and to no other. */
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
