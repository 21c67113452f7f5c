/** Servers and clients of tests. */
import { once } from 'node:events';

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
