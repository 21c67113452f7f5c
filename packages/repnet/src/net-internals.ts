/**
 * The few non-public properties of `net.Socket` this package relies on, all in one place, each checked when the module is
 * loaded. Present and alike in Node 20, 22 and 24.
 *
 * - `_handle` is an accessor of the prototype over a symbol-keyed slot. Overriding it lets a replicated socket keep its
 *   native handle from http and tls, which would otherwise read it past the replication.
 * - the handle points back to its socket by a symbol named 'owner_symbol'; moving a connected handle from one socket to
 *   another is setting slot and pointer (Node does the same when it tries several addresses).
 */
import net from 'node:net';

const descriptor = Object.getOwnPropertyDescriptor(net.Socket.prototype, '_handle');
if (descriptor?.get === undefined || descriptor.set === undefined)
  throw new Error(`repnet does not know the net.Socket of Node ${process.version}`);
const { get, set } = descriptor;

export interface Handle {
  reading?: boolean;
  bytesRead: number;
  bytesWritten: number;
  writeQueueSize?: number;
  /** The descriptor; -1 before there is one, and on Windows. */
  fd?: number;
  close(done?: () => void): void;
  /** Closes a TCP connection by RST. */
  reset?(done?: () => void): number;
  getAsyncId?(): number;
  [key: symbol]: unknown;
}

export function nativeHandle(socket: object): Handle | null {
  return get.call(socket) as Handle | null;
}

export function setNativeHandle(socket: object, handle: Handle | null): void {
  set.call(socket, handle);
}

function symbolNamed(object: object, name: string): symbol | undefined {
  for (let o: object | null = object; o !== null; o = Object.getPrototypeOf(o))
    for (const symbol of Object.getOwnPropertySymbols(o)) if (symbol.description === name) return symbol;
  return undefined;
}

const reinitialize = symbolNamed(net.Socket.prototype, 'kReinitializeHandle');
let owner: symbol | undefined;

/**
 * Moves the connected handle of `from` to `to`, which then is a native socket in every respect. `from` is left without.
 */
export function moveHandle(from: net.Socket, to: net.Socket): void {
  const handle = nativeHandle(from) as Handle;
  setNativeHandle(from, null);
  if (reinitialize !== undefined) {
    // It also resets the stream's state, which may hold an 'end' called before the connection was made.
    const shadow = to as unknown as { _undestroy?: () => void };
    shadow._undestroy = () => {};
    (to as unknown as Record<symbol, (h: Handle) => void>)[reinitialize]?.(handle);
    delete shadow._undestroy;
    return;
  }
  owner ??= symbolNamed(handle as object, 'owner_symbol') as symbol;
  setNativeHandle(to, handle);
  handle[owner] = to;
}
