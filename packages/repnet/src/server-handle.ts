/**
 * Notices when the handle of a listening server leaves the process: sent to another by `subprocess.send`, which then accepts
 * on the first port, too. Whoever sends it reads `_handle`, as does whoever may have it in mind; net's own methods are told
 * apart by being wrapped.
 */
import type net from 'node:net';
import { type Internals, kShared, type TcpHandle } from './server-internals.js';

const kHandle = Symbol('repnet.handle');
/** A read of net's own is to come, in the next tick after it began to listen. */
const kAnnounced = Symbol('repnet.announced');

type Kept = Internals & { [kHandle]: TcpHandle | null; [kAnnounced]: boolean };

// Above zero: net's own methods are at work.
let own = 0;

function wrap(proto: Internals, name: PropertyKey): void {
  const method = Reflect.get(proto, name) as (...args: unknown[]) => unknown;
  Object.defineProperty(proto, name, {
    value: function (this: Internals, ...args: unknown[]) {
      own++;
      try {
        return method.apply(this, args);
      } finally {
        own--;
      }
    },
    writable: true,
    configurable: true,
    enumerable: false,
  });
}

/** To be called when all methods of the prototype are in place. */
export function watchHandle(proto: Internals, base: net.Server): void {
  for (const name of ['listen', '_listen2', 'close', 'address', 'ref', 'unref', '_emitCloseIfDrained'])
    wrap(proto, name);
  const listening = Object.getOwnPropertyDescriptor(base, 'listening')?.get as () => boolean;
  Object.defineProperties(proto, {
    listening: {
      get(this: Internals) {
        own++;
        try {
          return listening.call(this);
        } finally {
          own--;
        }
      },
      configurable: true,
      enumerable: true,
    },
    _handle: {
      get(this: Kept) {
        const handle = this[kHandle] ?? null;
        if (own === 0 && handle !== null) {
          if (this[kAnnounced]) this[kAnnounced] = false;
          else this[kShared] = true;
        }
        return handle;
      },
      set(this: Kept, handle: TcpHandle | null) {
        this[kHandle] = handle;
        this[kAnnounced] = handle !== null;
      },
      configurable: true,
    },
  });
}
