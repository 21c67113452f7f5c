/** Servers in processes of their own: one that serves, and one whose queue of connections to accept is full, so that the kernel drops SYNs to it. */
import { fork } from 'node:child_process';
import net from 'node:net';
import { fileURLToPath } from 'node:url';
import { Kind } from '../../dist/wire.js';
import { hello, messageOf, until } from './support.mjs';

const HOST = '127.0.0.1';
const BACKLOG = 1;

/** An echo server of `api`, past the time in which one that has just begun lets no flow start with its second connection. */
export async function childServer(t, api, backlog = 511) {
  const child = fork(fileURLToPath(new URL('full-server.mjs', import.meta.url)), [api, String(backlog)]);
  t.after(() => child.kill('SIGKILL'));
  return {
    child,
    port: await messageOf(child),
    /** Bytes of each connection that the application was given. */
    connections() {
      child.send('count');
      return messageOf(child);
    },
  };
}

/** A server that stands still with a full queue on `port + offset`. */
export async function fullServer(t, api, offset) {
  const { child, port } = await childServer(t, api, BACKLOG);
  child.kill('SIGSTOP');
  // The kernel queues one more than it is asked to.
  const queued = Array.from({ length: BACKLOG + 1 }, () => {
    const socket = net.connect({ host: HOST, port: port + offset }).on('error', () => {});
    t.after(() => socket.destroy());
    socket.on('connect', () =>
      socket.write(offset === 0 ? 'x' : hello({ socket }, port, { kind: Kind.probe })),
    );
    return socket;
  });
  await until(() => queued.every(({ connecting }) => !connecting), 'the queue is full');
  return { port };
}
