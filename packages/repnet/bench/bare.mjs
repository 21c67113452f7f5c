/**
 * The floors that the bench prints beside what it measures: the two connections of a flow, or of a race, made by net itself, with
 * nothing that joins them: no hello, no records, no archive, no pairing at the server. What replication costs beyond is this
 * library's; less than this it cannot cost as long as it has two connections.
 */
import net from 'node:net';
import { nextPort } from '../dist/client/ports.js';

/** Two handshakes to one port; the loser is reset. Resolves to the winner. */
export function race(to) {
  return new Promise((resolve, reject) => {
    const sockets = [net.connect(to), net.connect(to)];
    for (const [i, socket] of sockets.entries()) {
      socket.once('connect', () => {
        const loser = sockets[1 - i].removeAllListeners('connect');
        if (loser.connecting) loser.destroy();
        else loser.resetAndDestroy();
        resolve(socket);
      });
      socket.once('error', reject);
    }
  });
}

/** `use` of two connections from one source port, to two ports; again from another if that one is taken. */
export async function twins(to, ports, use) {
  for (;;) {
    const localPort = nextPort();
    const sockets = ports.map((port) => net.connect({ ...to, port, localPort }));
    try {
      return await use(sockets);
    } catch (error) {
      for (const socket of sockets) socket.destroy();
      if (error.code !== 'EADDRINUSE') throw error;
    }
  }
}

/** Each of `count` requests on both connections, the next one as soon as either has brought the answer. `answered` is told how many there are. */
export function requestBoth(sockets, request, count, answered) {
  return new Promise((resolve, reject) => {
    let begun = 1;
    let closed = 0;
    const all = () => {
      for (const socket of sockets) socket.write(request);
    };
    for (const socket of sockets) {
      let received = 0;
      socket.on('data', (chunk) => {
        received += chunk.length;
        if (received < begun * request.length) {
          // The one that is behind ends when it has brought everything, too.
          if (begun > count && received === count * request.length) socket.end();
          return;
        }
        answered(begun++);
        if (begun <= count) all();
        else socket.end();
      });
      socket.on('error', reject);
      socket.on('close', () => ++closed === sockets.length && resolve());
    }
    all();
  });
}
