/** What behaviours of a net are observed with: servers and clients that are closed afterwards, and what they show. */
import { once } from 'node:events';
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
