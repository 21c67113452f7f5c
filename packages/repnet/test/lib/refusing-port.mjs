/** Ports that refuse connections for as long as a test runs, whoever listens on ports that the system chooses meanwhile. */
import net from 'node:net';

function bind(host, port) {
  const handle = net._createServerHandle(host, port, net.isIP(host));
  return typeof handle === 'number' ? undefined : handle;
}

/** A port of `host` to which nobody listens, nor to its successor: both are bound until the test is over. */
export function refusingPort(t, host = '127.0.0.1') {
  for (;;) {
    const first = bind(host, 0);
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
