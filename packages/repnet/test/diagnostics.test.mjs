/** What the diagnostics channels tell, of flows of every mode, at both ends. */
import assert from 'node:assert/strict';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, test } from 'node:test';
import { forgetPeers } from '../dist/client/peers.js';
import repnet from '../dist/index.js';
import { defaults, echo, echoServer, hello, ownPort, raw, until } from './lib/support.mjs';

const HOST = '127.0.0.1';

beforeEach(() => {
  forgetPeers();
  repnet.resetStats();
  Object.assign(defaults, { waitTimeout: 300, pairTimeout: 300 });
});

/** What is told on the channels of these names from now on. */
function listen(t, ...names) {
  const told = [];
  for (const name of names) {
    const listener = (message) => told.push({ name, ...message });
    subscribe(`repnet:${name}`, listener);
    t.after(() => unsubscribe(`repnet:${name}`, listener));
  }
  return told;
}

const dial = (t, port, options) => {
  const socket = repnet.connect({ host: HOST, port, ...options });
  t.after(() => socket.destroy());
  return socket;
};

async function plainServer(t) {
  const server = net.createServer((socket) => socket.on('error', () => {}).pipe(socket)).listen(0, HOST);
  await once(server, 'listening');
  t.after(() => server.close());
  return server.address().port;
}

const won = ({ wonByPrimary, wonByReplica }) => wonByPrimary + wonByReplica;

test('a flow on two connections: begun, paired, finished at both ends, once each', async (t) => {
  const { port, sockets } = await echoServer(t);
  const told = listen(t, 'flow', 'paired', 'finished');
  const socket = dial(t, port, { replicate: 'flow', peer: 'repnet' });
  assert.equal(await echo(socket, 'twelve bytes'), 'twelve bytes');
  await until(() => told.filter(({ name }) => name === 'paired').length === 2);
  socket.end();
  await until(() => told.filter(({ name }) => name === 'finished').length === 2);
  assert.deepEqual(told[0], { name: 'flow', socket, mode: 'flow' });
  for (const end of [socket, sockets[0]]) {
    const [paired, finished, ...more] = told.slice(1).filter((each) => each.socket === end);
    assert.deepEqual([paired.name, finished.name, more], ['paired', 'finished', []]);
    assert.deepEqual(
      { mode: finished.mode, read: finished.bytesRead, written: finished.bytesWritten, won: won(finished) },
      { mode: 'flow', read: 12, written: 12, won: 12 },
    );
  }
});

for (const [what, options] of [
  ['by its own choice', { replicate: false }],
  ['to a server that is known to be plain', { replicate: 'flow', peer: 'plain' }],
])
  test(`a plain flow, ${what}: begun and finished, once each`, async (t) => {
    const port = await plainServer(t);
    const told = listen(t, 'flow', 'finished');
    const socket = dial(t, port, options);
    assert.equal(await echo(socket, 'twelve bytes'), 'twelve bytes');
    socket.destroy();
    await until(() => told.length === 2);
    const bytes = { bytesRead: 12, bytesWritten: 12, wonByPrimary: 12, wonByReplica: 0 };
    assert.deepEqual(told, [
      { name: 'flow', socket, mode: 'plain' },
      { name: 'finished', socket, mode: 'plain', ...bytes },
    ]);
  });

test('a RepSYN flow: begun and finished at both ends, the bytes are the winner’s', async (t) => {
  const { port, sockets } = await echoServer(t);
  const told = listen(t, 'flow', 'finished');
  const socket = dial(t, port, { replicate: 'syn', peer: 'repnet' });
  assert.equal(await echo(socket, 'twelve bytes'), 'twelve bytes');
  const { winner } = repnet.info(socket);
  socket.end();
  await until(() => told.length === 3);
  assert.deepEqual(told[0], { name: 'flow', socket, mode: 'syn' });
  const finished = (end) => told.find((each) => each.name === 'finished' && each.socket === end);
  const [mine, servers] = [finished(socket), finished(sockets[0])];
  const bytes = { bytesRead: 12, bytesWritten: 12 };
  const byWinner =
    winner === 'primary' ? { wonByPrimary: 12, wonByReplica: 0 } : { wonByPrimary: 0, wonByReplica: 12 };
  assert.deepEqual(mine, { name: 'finished', socket, mode: 'syn', ...bytes, ...byWinner });
  // A first connection that wins is one as net makes it.
  const seen = winner === 'primary' ? 'plain' : 'syn';
  assert.deepEqual([servers.mode, servers.bytesRead, won(servers)], [seen, 12, 12]);
});

test('a plain client of a server: finished as plain, also where it had waited for a second connection', async (t) => {
  const { port, sockets } = await echoServer(t);
  const told = listen(t, 'finished');
  const client = await raw(t, port);
  client.socket.write('twelve bytes');
  await until(() => client.bytes.length === 12);
  client.socket.destroy();
  await until(() => told.length === 1);
  const bytes = { bytesRead: 12, bytesWritten: 12, wonByPrimary: 12, wonByReplica: 0 };
  assert.deepEqual(told, [{ name: 'finished', socket: sockets[0], mode: 'plain', ...bytes }]);
});

test('a flow that cannot be connected is finished, too', async (t) => {
  const port = await plainServer(t);
  const told = listen(t, 'flow', 'finished');
  for (const [mode, peer] of [
    ['flow', 'repnet'],
    ['syn', 'plain'],
  ]) {
    // Nobody listens at this address.
    const socket = dial(t, port, { host: '127.0.0.9', replicate: mode, peer });
    await once(socket, 'error');
    assert.deepEqual(
      told.splice(0).map(({ name, mode: said, bytesRead }) => [name, said, bytesRead ?? 0]),
      [
        ['flow', mode, 0],
        ['finished', mode, 0],
      ],
    );
  }
});

test('Unix sockets and sockets that were never connected are no flows', async (t) => {
  const path = join(tmpdir(), `repnet-diagnostics-${process.pid}.sock`);
  const told = listen(t, 'flow', 'finished');
  const server = repnet.createServer((socket) => socket.pipe(socket)).listen(path);
  await once(server, 'listening');
  const socket = repnet.connect(path);
  assert.equal(await echo(socket, 'x'), 'x');
  socket.end();
  await once(socket, 'close');
  server.close();
  await once(server, 'close');
  new repnet.Socket().destroy();
  assert.deepEqual(told, []);
});

test('a connection that is lost while the other is good: failover says which, and of what', async (t) => {
  const { port, sockets } = await echoServer(t);
  const localPort = ownPort();
  const first = await raw(t, port, { localPort });
  const second = await raw(t, port + 1, { localPort });
  second.socket.write(hello(second, port));
  await until(() => repnet.stats().flowsPaired === 1);
  const told = listen(t, 'failover');
  first.socket.resetAndDestroy();
  await until(() => told.length === 1);
  const [{ socket, copy, error }] = told;
  assert.deepEqual([socket, copy, error.code], [sockets[0], 'primary', 'ECONNRESET']);
  assert.equal(sockets[0].destroyed, false);
});

test('a second connection that a server turns away: refused says why, and whose it was', async (t) => {
  const { port } = await echoServer(t);
  const told = listen(t, 'refused');
  const second = await raw(t, port + 1);
  const { localPort: remotePort } = second.socket;
  second.socket.write(hello(second, port, { sourcePort: 1 }));
  await until(() => told.length === 1);
  assert.deepEqual(told, [{ name: 'refused', reason: 'mismatch', remoteAddress: HOST, remotePort }]);
});

for (const replicate of [false, 'flow', 'syn'])
  test(`net.client.socket, replicate ${replicate}: told once of the application's socket, as by net`, async (t) => {
    const { port } = await echoServer(t);
    const told = [];
    const hear = ({ socket }) => told.push(socket);
    subscribe('net.client.socket', hear);
    t.after(() => unsubscribe('net.client.socket', hear));
    const socket = dial(t, port, { replicate, peer: 'repnet' });
    assert.equal(await echo(socket, 'x'), 'x');
    assert.deepEqual(told, [socket]);
  });
