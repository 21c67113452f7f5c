/**
 * Connections whose SYNs are lost for as long as a test wants. At either end one is like a connection that is not begun yet, so that is
 * what they are: nobody waits for the system to repeat a SYN, and nothing depends on when it does.
 */
import { once } from 'node:events';
import net from 'node:net';
import { constants } from 'node:os';

/**
 * `isLost(port, nth)`: whether that is the lot of this process's nth connection to `port`, from 0. `begun(port)`: how many there have been;
 * `lost`: those that are; `arrive()`: their next SYNs get there; `takenOnce(port)`: the next connection to `port` finds its source port
 * taken (what it returns says whether it has).
 */
export async function lostSyns(t, isLost) {
  const server = net.createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const prototype = Object.getPrototypeOf(server._handle);
  server.close();
  const { connect } = prototype;
  const counts = new Map();
  const begun = (port) => counts.get(port) ?? 0;
  const lost = [];
  let taken;
  prototype.connect = function (...args) {
    const port = args[2];
    if (port === taken) {
      taken = undefined;
      return -constants.errno.EADDRINUSE;
    }
    const nth = begun(port);
    counts.set(port, nth + 1);
    if (!isLost(port, nth)) return connect.apply(this, args);
    const each = { handle: this, args, givenUp: false };
    lost.push(each);
    for (const end of ['close', 'reset']) {
      const original = this[end];
      this[end] = (...rest) => {
        each.givenUp = true;
        return original.apply(this, rest);
      };
    }
    return 0;
  };
  const stop = () => {
    prototype.connect = connect;
  };
  t.after(stop);
  return {
    begun,
    lost,
    takenOnce(port) {
      taken = port;
      return () => taken === undefined;
    },
    arrive() {
      stop();
      for (const { handle, args, givenUp } of lost)
        if (!givenUp && connect.apply(handle, args) !== 0) throw new Error('a SYN could not be sent');
    },
  };
}
