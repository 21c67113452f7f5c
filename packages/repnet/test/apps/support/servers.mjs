/** Servers and clients of tests. */
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

/** A loopback port that was free a moment ago, for programs that cannot be asked to find one. */
export async function freePort() {
  const server = net.createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}
