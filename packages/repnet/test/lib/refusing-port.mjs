/** Ports that refuse connections for as long as a test runs, whoever listens on ports that the system chooses meanwhile. */
import net from 'node:net';

/** A handle that holds the port; undefined: another program has it, also by a connection of its own, which `bind` reports late. */
function bind(host, port) {
  const handle = net._createServerHandle(host, port, net.isIP(host));
  if (typeof handle === 'number') return undefined;
  if (handle.getsockname({}) === 0) return handle;
  handle.close();
  return undefined;
}

/** A port of `host` to which nobody listens, nor to its successor: both are bound until the test is over. */
export function refusingPort(t, host = '127.0.0.1') {
  for (;;) {
    const first = bind(host, 0);
    if (first === undefined) continue;
    const bound = {};
    first.getsockname(bound);
    const second = bound.port < 65_535 ? bind(host, bound.port + 1) : undefined;
    if (second !== undefined) {
      t.after(() => {
        first.close();
        second.close();
      });
      return bound.port;
    }
    first.close();
  }
}
