/** Servers and clients of tests. */
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import net from 'node:net';

/** The three ways a flow can be carried: every test of a client runs in each. */
export const MODES = [false, 'syn', 'flow'];

/** Listen on a free loopback port (or pair of ports); closed, with its connections, when the test ends. Returns the port. */
export async function listen(t, server, options = {}) {
  const sockets = new Set();
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.listen({ host: '127.0.0.1', port: 0, ...options });
  await once(server, 'listening');
  t.after(async () => {
    const closed = server.listening ? once(server, 'close') : undefined;
    server.close();
    for (const socket of sockets) socket.destroy();
    await closed;
  });
  return server.address().port;
}

/** Everything a readable gives, as one Buffer. */
export async function collect(readable) {
  const chunks = [];
  for await (const chunk of readable) chunks.push(chunk);
  return Buffer.concat(chunks);
}

const listens = (server, port) =>
  new Promise((resolve) =>
    server.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true)),
  );

/**
 * A loopback port that was free a moment ago, as were the `beside` next ones, for programs that cannot be asked to find one. Below
 * those that the system gives to connections and to whoever asks for any: nobody is given it meanwhile.
 */
export async function freePort(beside = 0) {
  for (;;) {
    const port = 10_000 + randomInt(22_000);
    const servers = Array.from({ length: beside + 1 }, () => net.createServer());
    const free = await Promise.all(servers.map((server, n) => listens(server, port + n)));
    await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
    if (free.every(Boolean)) return port;
  }
}
