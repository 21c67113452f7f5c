/** What behaviours of a net are observed with: servers and clients that are closed afterwards, and what they show. */
import { once } from 'node:events';
import { isIP } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { until } from './support.mjs';

export const HOST = '127.0.0.1';
export const echoing = (socket) => socket.on('error', () => {}).on('data', (chunk) => socket.write(chunk));

/** Listens; everything is closed when the behaviour has been observed. */
export async function serve({ api, cleanUp }, options, onConnection, ...listen) {
  const server = api.createServer(options);
  const sockets = new Set();
  server.on('connection', (socket) => {
    sockets.add(socket);
    onConnection?.(socket);
  });
  cleanUp.push(() => {
    for (const socket of sockets) socket.destroy();
    if (server.listening) server.close();
  });
  server.listen(...(listen.length > 0 ? listen : [0, HOST]));
  await once(server, 'listening');
  /** What was accepted of this client, and of no other that comes to the port. */
  const acceptedFrom = async ({ localPort }) => {
    const of = () => [...sockets].find(({ remotePort }) => remotePort === localPort);
    await until(of, `a connection from port ${localPort} is accepted`);
    return of();
  };
  return { server, port: server.address().port, sockets, acceptedFrom };
}

export function dial({ api, cleanUp }, ...args) {
  const socket = api.connect(...args);
  cleanUp.push(() => socket.destroy());
  return socket;
}

export async function echo(socket, text = 'x') {
  socket.write(text);
  const [chunk] = await once(socket, 'data');
  return chunk.toString();
}

/** The names of these events in the order in which they come. */
export function record(emitter, names, log, label = '') {
  for (const name of names)
    emitter.on(name, (arg) => log.push(label + name + (name === 'close' ? `:${arg}` : '')));
}

export const path = (n) => join(tmpdir(), `repnet-drop-in-${process.pid}-${n}.sock`);
export const thrown = (f) => {
  try {
    f();
    return 'nothing';
  } catch (error) {
    return error.code ?? error.name;
  }
};
export const failure = async (emitter) => {
  const [{ code, syscall, address, name }] = await once(emitter, 'error');
  return { code, syscall, address, name };
};
export const quiet = (socket) => socket.on('error', () => {});
export const code = (error) => error?.code ?? error?.name ?? error;
/** A resolver that knows one name, of these addresses. */
export const resolving =
  (...addresses) =>
  (_host, options, done) => {
    const all = addresses.map((address) => ({ address, family: isIP(address) }));
    process.nextTick(done, null, ...(options.all ? [all] : [all[0].address, all[0].family]));
  };
/** The documented properties of a socket. */
export const snapshot = (socket, port) => ({
  states: [socket.connecting, socket.pending, socket.destroyed, socket.readyState],
  flows: [socket.readable, socket.writable, socket.readableFlowing, socket.isPaused()],
  ends: [socket.readableEnded, socket.writableEnded, socket.writableFinished, socket.closed],
  sizes: [socket.bufferSize, socket.writableLength, socket.bytesRead, socket.bytesWritten, socket.timeout],
  local: [socket.localAddress, typeof socket.localPort, socket.localFamily, Object.keys(socket.address())],
  remote: [socket.remoteAddress, socket.remotePort === port, socket.remoteFamily],
});
