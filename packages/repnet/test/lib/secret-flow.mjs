/** Flows whose first bytes are for one server alone, and what they come to. */
import { once } from 'node:events';
import repnet from '../../dist/index.js';
import { settle } from './support.mjs';

export const SECRET = 'for A only';

/** Serves connections: answers with `name`, and keeps what it hears. */
export const answering =
  (name, heard = []) =>
  (socket) =>
    socket.on('data', (chunk) => {
      heard.push(chunk);
      socket.write(name);
    });

/** What a flow comes to that says SECRET: an answer, or the code of its error. */
export async function dial(t, port, options) {
  const socket = (options.api ?? repnet).connect({ host: '127.0.0.1', port, ...options });
  t.after(() => socket.destroy());
  socket.on('connect', () => socket.write(SECRET));
  const [said] = await Promise.race([
    once(socket, 'data').then(([data]) => [String(data)]),
    new Promise((resolve) => socket.once('error', ({ code }) => resolve([code]))),
  ]);
  await settle();
  socket.destroy();
  return said;
}
