/**
 * An attempt to connect: net's own way there (resolving, choosing among addresses, its events and errors), and then only the
 * native handle.
 */
import net from 'node:net';
import { type Handle, nativeHandle, takeHandle } from '../net-internals.js';
import type { Copy } from './machine.js';

export interface AttemptSink {
  /** The connection is established. */
  attemptOpen(attempt: Attempt, handle: Handle): void;
  /** It is not; never after `abandon`. */
  attemptFailed(attempt: Attempt, error: NodeJS.ErrnoException | undefined): void;
  /** What net tells on the way ('lookup', 'connectionAttempt' …). */
  attemptEvent(attempt: Attempt, event: string, args: unknown[]): void;
}

const { prototype } = net.Socket;

export class Attempt extends net.Socket {
  readonly copy: Copy;
  #sink: AttemptSink | undefined;

  constructor(copy: Copy, sink: AttemptSink, options: net.SocketConstructorOpts) {
    super(options);
    this.copy = copy;
    this.#sink = sink;
  }

  // biome-ignore lint/suspicious/noExplicitAny: the signature of EventEmitter
  override emit(event: string | symbol, ...args: any[]): boolean {
    switch (event) {
      case 'connect': {
        const sink = this.#sink;
        this.#sink = undefined;
        sink?.attemptOpen(this, takeHandle(this));
        return true;
      }
      case 'lookup':
      case 'connectionAttempt':
      case 'connectionAttemptFailed':
      case 'connectionAttemptTimeout':
        this.#sink?.attemptEvent(this, event, args);
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

  /** Gives it up. `reset`: by RST, if the kernel has established what Node still takes for connecting. */
  abandon(reset: boolean): void {
    this.#sink = undefined;
    if (reset) {
      const handle = nativeHandle(this);
      // One without a descriptor yet cannot be reset, and a reset that fails leaves a handle that cannot be closed.
      if (handle !== null && (handle.fd ?? -1) >= 0) takeHandle(this).reset();
    }
    prototype.destroy.call(this);
  }
}
