/**
 * Joins two sockets into one connection: bytes, back-pressure, half-close, and failure are carried
 * both ways.
 */
import type { Socket } from 'node:net';

export type RelayEnd = 'closed' | 'connect-failed' | 'connect-timeout' | 'idle-timeout' | 'broken';

export interface RelayOptions {
  /** ms until the far side must have connected; 0 for never. */
  readonly connectTimeout: number;
  /** ms without a byte either way after which the relay is given up; 0 for never. */
  readonly idleTimeout: number;
}

export interface Relay {
  /** Bytes that the far side's system has taken of the near side's, and the other way round. */
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** Ends both sides at once. */
  destroy(): void;
}

/**
 * Relay between an accepted socket and one that may still be connecting (both with allowHalfOpen).
 * `done` runs once, when both are closed. A side that fails resets the other, so that no peer takes
 * a broken stream for a complete one.
 */
export function relay(
  near: Socket,
  far: Socket,
  options: RelayOptions,
  done: (end: RelayEnd, error?: Error) => void,
): Relay {
  let end: RelayEnd | undefined;
  let failure: Error | undefined;
  let connected = false;
  let open = 2;

  const stop = (reason: RelayEnd, error?: Error): void => {
    end ??= reason;
    failure ??= error;
    clearTimeout(timer);
    reset(near);
    reset(far);
  };
  const { connectTimeout } = options;
  const timer = connectTimeout > 0 ? setTimeout(() => stop('connect-timeout'), connectTimeout) : undefined;
  far.once('connect', () => {
    connected = true;
    clearTimeout(timer);
  });

  for (const [socket, other] of [
    [near, far],
    [far, near],
  ] as const) {
    socket.on('error', (error) => stop(socket === far && !connected ? 'connect-failed' : 'broken', error));
    socket.on('close', () => {
      if (!socket.readableEnded && end === undefined) stop('broken');
      else if (!other.destroyed && !other.writableEnded && end === undefined) other.end();
      if (--open === 0) {
        clearTimeout(timer);
        done(end ?? 'closed', failure);
      }
    });
  }
  const into = forward(near, far);
  const outOf = forward(far, near);
  if (options.idleTimeout > 0) {
    // Every byte of either direction passes the near socket, so its own inactivity timer covers
    // both.
    near.setTimeout(options.idleTimeout, () => stop('idle-timeout'));
  }
  return {
    destroy: () => stop('broken'),
    get bytesIn() {
      return into.bytes;
    },
    get bytesOut() {
      return outOf.bytes;
    },
  };
}

/**
 * Forwards one direction until `to` closes; counts the bytes that the system has taken, not those
 * that only wait for it.
 */
function forward(from: Socket, to: Socket): { readonly bytes: number } {
  const taken = { bytes: 0 };
  const write = (chunk: Buffer): void => {
    const more = to.write(chunk, (error) => {
      if (!error && !to.destroyed) taken.bytes += chunk.length;
    });
    if (more) return;
    from.pause();
    to.once('drain', () => from.resume());
  };
  from.on('data', write);
  from.once('end', () => to.end());
  to.once('close', () => {
    from.off('data', write);
    from.pause();
  });
  return taken;
}

/** RST where there is one to send (a Unix socket has none). */
function reset(socket: Socket): void {
  if (socket.destroyed) return;
  if (socket.remoteAddress !== undefined) socket.resetAndDestroy();
  else socket.destroy();
}
