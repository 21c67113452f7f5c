/**
 * A userspace relay between client and server that keeps the client's source port, so that connections pair as they would
 * without it, and does to each connection what a plan says.
 */
import net from 'node:net';
import { newHandle } from '../../dist/net-internals.js';

/**
 * @typedef {object} Fault
 * @property {0 | 1} copy 0: the first connection of a flow, 1: the replica
 * @property {'up' | 'down'} direction
 * @property {number} at bytes of that direction and connection that pass before it strikes
 * @property {'cut' | 'rst' | 'fin' | 'stall' | 'pause' | 'nosyn'} kind cut: both sides are closed; rst: both are reset;
 *   fin: the receiver sees a FIN and nothing more; stall: nothing more passes; pause: nothing passes for `ms`, or before `until`;
 *   nosyn: the server never sees the connection
 * @property {(client: net.Socket) => void} [fallen] stall, nosyn: called when it strikes
 * @property {number} [ms]
 * @property {Promise<void>} [until]
 */

/**
 * Starts a relay on `host`; `faultsFor(sourcePort, copy, sourceAddress)` gives the faults of a connection, `onBytes(sourcePort, copy,
 * direction, bytes)` sees what passes, in the order in which it does, `alters()` gives each connection what may alter it on the way
 * (`(direction, bytes)`), and `onCollision(sourcePort, sourceAddress)` that the relay could
 * not have the client's port. `secondPort`: where the second connection goes, if not
 * to the successor of `targetPort`; `translates`: as NAT does, neither address nor port of the client stays; `refuses`: nobody
 * listens for the second.
 */
export async function startRelay({
  targetPort = 0,
  targetHost = '127.0.0.1',
  secondPort,
  host = '127.0.0.2',
  faultsFor = () => [],
  onBytes = () => {},
  alters,
  onCollision = () => {},
  translates = false,
  refuses = false,
}) {
  const relay = { targetPort, secondPort };
  const servers = [];
  const open = new Map();
  const accept = (copy) => (client) => {
    const faults = faultsFor(client.remotePort, copy, client.remoteAddress);
    const source = `${client.remoteAddress}:${client.remotePort}`;
    const alter = alters?.();
    const keep = (socket) => {
      open.set(socket, source);
      socket.on('close', () => open.delete(socket));
    };
    keep(client);
    client.on('error', () => {});
    const unseen = faults.find((f) => f.kind === 'nosyn');
    if (unseen !== undefined) {
      client.resume();
      unseen.fallen?.(client);
      return;
    }
    const upstream = net.connect({
      host: targetHost,
      port: copy === 1 && relay.secondPort !== undefined ? relay.secondPort : relay.targetPort + copy,
      ...(translates ? {} : { localAddress: client.remoteAddress, localPort: client.remotePort }),
      allowHalfOpen: true,
      noDelay: true,
    });
    client.setNoDelay(true);
    keep(upstream);
    upstream.on('error', ({ code }) => {
      if (code === 'EADDRINUSE' || code === 'EADDRNOTAVAIL')
        onCollision(client.remotePort, client.remoteAddress);
      reset(client);
    });
    client.on('error', () => reset(upstream));
    client.pause();
    upstream.once('connect', () => {
      client.resume();
      for (const [direction, from, to] of [
        ['up', client, upstream],
        ['down', upstream, client],
      ])
        pass(
          from,
          to,
          faults.find((fault) => fault.direction === direction),
          (bytes) => {
            alter?.(direction, bytes);
            onBytes(client.remotePort, copy, direction, bytes);
          },
        );
    });
  };
  let port = 0;
  for (let attempt = 0; port === 0 && attempt < 50; attempt++) {
    const first = net.createServer({ allowHalfOpen: true }, accept(0));
    const second = net.createServer({ allowHalfOpen: true }, accept(1));
    await new Promise((resolve) => first.listen(0, host, resolve));
    const ok = await new Promise((resolve) => {
      second.once('error', () => resolve(false));
      second.listen(first.address().port + 1, host, () => resolve(true));
    });
    if (ok) {
      port = first.address().port;
      servers.push(first, second);
    } else first.close();
  }
  if (refuses) {
    await new Promise((resolve) => servers.pop().close(resolve));
    // Bound, so that the system gives it to nobody who asks for any port.
    const held = newHandle();
    held.bind(host, port + 1);
    servers.push(held);
  }
  Object.assign(relay, {
    host,
    port,
    close() {
      for (const server of servers) server.close();
      for (const socket of open.keys()) socket.destroy();
    },
    /** The same for all that comes from an address. */
    dropFrom(address) {
      for (const [socket, from] of open) if (from.startsWith(`${address}:`)) socket.destroy();
    },
    /** What comes from 'address:port' is over: nobody else closes a connection that has stalled. */
    drop(source) {
      for (const [socket, from] of open) if (from === source) socket.destroy();
    },
  });
  return relay;
}

/** A handle that is shutting down cannot be reset, and Node would forget it without closing it. */
function reset(socket) {
  if (socket.writableEnded && !socket.writableFinished) socket.destroy();
  else socket.resetAndDestroy();
}

function pass(from, to, fault, passes) {
  let passed = 0;
  let struck = false;
  const strike = () => {
    struck = true;
    switch (fault.kind) {
      case 'cut':
        // What has been passed gets out; then both see the end of the connection.
        to.end();
        from.end();
        setImmediate(() => {
          to.destroySoon();
          from.destroySoon();
        });
        return;
      case 'rst':
        reset(to);
        reset(from);
        return;
      case 'fin':
        to.end();
        from.resume();
        return;
      case 'stall':
        fault.fallen?.();
        from.resume();
        return;
      case 'pause': {
        from.pause();
        const resume = () => {
          struck = false;
          fault = undefined;
          from.resume();
        };
        if (fault.until === undefined) setTimeout(resume, fault.ms ?? 30);
        else fault.until.then(resume);
      }
    }
  };
  if (fault?.at === 0) strike();
  from.on('data', (chunk) => {
    if (struck && fault !== undefined) {
      if (fault.kind === 'pause') from.unshift(chunk);
      return;
    }
    const room = fault === undefined ? chunk.length : fault.at - passed;
    if (room >= chunk.length) {
      passed += chunk.length;
      passes(chunk);
      if (!to.writableEnded && !to.write(chunk)) {
        from.pause();
        to.once('drain', () => from.resume());
      }
      if (fault !== undefined && passed === fault.at) strike();
      return;
    }
    if (room > 0 && !to.writableEnded) {
      passes(chunk.subarray(0, room));
      to.write(chunk.subarray(0, room));
    }
    passed += room;
    const rest = chunk.subarray(room);
    strike();
    if (fault.kind === 'pause') from.unshift(rest);
  });
  from.on('end', () => {
    if (!(struck && fault?.kind === 'stall')) to.end();
  });
}
