/**
 * A process with servers, told what to do by messages: `listen` on a port (of `net` or of repnet), `fork` a process like itself, `give` that
 * one its listening server, `child` passes a message on to it, `close` its servers. `heard`: all that its servers were sent.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import { fileURLToPath } from 'node:url';
import repnet from '../../dist/index.js';

const servers = [];
const sockets = new Set();
let heard = '';
let child;

function answer(socket, text) {
  sockets.add(socket);
  socket.on('error', () => {}).on('close', () => sockets.delete(socket));
  socket.on('data', (chunk) => {
    heard += chunk.toString('latin1');
    socket.write(text);
  });
}

const actions = {
  async listen({ api, port, text }) {
    const server = (api === 'net' ? net : repnet).createServer((socket) => answer(socket, text));
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    servers.push(server);
    return server.address().port;
  },
  async fork() {
    child = fork(fileURLToPath(import.meta.url));
    await once(child, 'message');
  },
  async give({ text }) {
    child.send({ what: 'take', text }, servers[0]);
    await once(child, 'message');
  },
  take({ text }, server) {
    server.on('connection', (socket) => answer(socket, text));
    servers.push(server);
  },
  async child({ message }) {
    child.send(message);
    const [{ result }] = await once(child, 'message');
    return result;
  },
  async close() {
    for (const socket of sockets) socket.destroy();
    await Promise.all(servers.splice(0).map((server) => new Promise((closed) => server.close(closed))));
  },
  heard: () => heard,
  /** A client in this process. */
  async dial({ options, text }) {
    const socket = repnet.connect(options);
    socket.write(text);
    const [reply] = await once(socket, 'data');
    socket.destroy();
    return String(reply);
  },
};

process.on('message', async (message, handle) => {
  process.send({ result: await actions[message.what](message, handle) });
});
process.on('disconnect', () => process.exit());
process.send('ready');
