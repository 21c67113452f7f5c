/** A server whose queue of connections to accept is full: the kernel drops SYNs to it. */
import { fork } from 'node:child_process';
import net from 'node:net';
import { fileURLToPath } from 'node:url';
import { Kind } from '../../dist/wire.js';
import { hello, messageOf, PATIENCE } from './support.mjs';

const HOST = '127.0.0.1';
const BACKLOG = 1;

/** Waits by turns of the event loop: the timers stand still. */
export async function until(condition, what) {
  for (const end = Date.now() + PATIENCE; !condition(); ) {
    if (Date.now() > end)
      throw new Error(`not within ${PATIENCE} ms: ${what}; open: ${process.getActiveResourcesInfo()}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** A server that stands still with a full queue on `port + offset`. */
export async function fullServer(t, api, offset) {
  const child = fork(fileURLToPath(new URL('full-server.mjs', import.meta.url)), [api, String(BACKLOG)]);
  t.after(() => child.kill('SIGKILL'));
  const port = await messageOf(child);
  child.kill('SIGSTOP');
  // The kernel queues one more than it is asked to.
  const queued = Array.from({ length: BACKLOG + 1 }, () => {
    const socket = net.connect({ host: HOST, port: port + offset }).on('error', () => {});
    t.after(() => socket.destroy());
    const seen = { answered: false };
    socket.on('connect', () =>
      socket.write(offset === 0 ? 'x' : hello({ socket }, port, { kind: Kind.probe })),
    );
    socket.on('data', () => {
      seen.answered = true;
    });
    return Object.assign(seen, { socket });
  });
  await until(() => queued.every(({ socket }) => !socket.connecting), 'the queue is full');
  return {
    port,
    /** Goes on, and has accepted what was queued. */
    async wake() {
      child.kill('SIGCONT');
      await until(() => queued.every(({ answered }) => answered), 'the queue has room');
      for (const { socket } of queued) socket.destroy();
    },
    /** Bytes of each connection that the application was given, less those that filled the queue. */
    async connections() {
      child.send('count');
      const bytes = await messageOf(child);
      return offset === 0 ? bytes.slice(queued.length) : bytes;
    },
  };
}
