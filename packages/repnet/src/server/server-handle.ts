/** Listening servers of which another process gets the handle, and accepts on the first port then, too. */
import { onLeaving } from '../handover.js';
import { type Internals, kShared } from './server-internals.js';

const listening = new Set<Internals>();
let asked = false;

/** Until `forgetHandle`, what leaves the process is compared with the server's handle. */
export function watchHandle(server: Internals): void {
  if (!asked) onLeaving(leaving);
  asked = true;
  listening.add(server);
}

export function forgetHandle(server: Internals): void {
  listening.delete(server);
}

/** `object`: a server, its handle or, as one of the `stdio` of a child, its descriptor. */
function leaving(object: unknown): unknown {
  for (const server of listening) {
    const handle = server._handle;
    if (handle === null) continue;
    if (object === server || object === handle || (typeof object === 'number' && object === handle.fd))
      server[kShared] = true;
  }
  return object;
}
