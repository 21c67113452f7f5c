/**
 * Imported for its effect: servers are as far away as those on other hosts. On this host the system establishes a connection while
 * it is begun, and a race to an unmodified server ends before it has a second connection; here none is established before the next
 * turn of the event loop.
 */
import net from 'node:net';
import { constants } from 'node:os';

const server = net.createServer().listen(0);
const prototype = Object.getPrototypeOf(server._handle);
server.close();

const begun = new Set();
for (const name of ['connect', 'connect6']) {
  const original = prototype[name];
  prototype[name] = function (...args) {
    begun.add(this);
    // What is to begin in this turn is queued by now.
    process.nextTick(() => process.nextTick(() => begun.delete(this)));
    return original.apply(this, args);
  };
}
const { getpeername } = prototype;
prototype.getpeername = function (...args) {
  return begun.has(this) ? -constants.errno.ENOTCONN : getpeername.apply(this, args);
};
