/** Sockets that are sent to another process, as net's are: `subprocess.send(message, socket)`. */
import assert from 'node:assert/strict';
import { execFile, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import http from 'node:http';
import net from 'node:net';
import { after, before, beforeEach, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { createServer as createHttpServer } from '../dist/adapters/http.js';
import { forgetPeers } from '../dist/client/peers.js';
import repnet from '../dist/index.js';
import { decodeAnswer, Refusal } from '../dist/wire.js';
import { lostSyns } from './lib/lost-syns.mjs';
import { defaults, echo, echoServer, hello, messageOf, ownPort, raw, until } from './lib/support.mjs';

const HOST = '127.0.0.1';
const CHILD = fileURLToPath(new URL('lib/handover-child.mjs', import.meta.url));
const OLDER = fileURLToPath(new URL('lib/handover-older.mjs', import.meta.url));

let child;
/** What the other process has said. */
let got = [];
before(async () => {
  child = fork(CHILD);
  await messageOf(child);
  child.on('message', (message) => got.push(message));
});
after(() => child.disconnect());

/** The other process has the socket. */
const arrived = () => until(() => got.length > 0, 'it has arrived');

beforeEach(() => {
  got = [];
  forgetPeers();
  repnet.resetStats();
  Object.assign(defaults, { waitTimeout: 300, pairTimeout: 300 });
});

/** A server that does `accept` with each connection. */
async function serve(t, api, accept, options = { pauseOnConnect: true }) {
  const server = api.createServer(options, accept);
  await new Promise((resolve) => server.listen(0, HOST, resolve));
  t.after(() => server.close());
  return { server, port: server.address().port };
}

/** All that comes until the other side ends. */
async function answer(socket) {
  let text = '';
  for await (const chunk of socket) text += chunk;
  return text;
}

/** In each case of one kind, what net does is expected. */
async function asNet(exchange) {
  const expected = await exchange(net, {});
  for (const replicate of ['flow', 'syn', false])
    assert.deepEqual(await exchange(repnet, { replicate }), expected, String(replicate));
  return expected;
}

test('a socket that a server has accepted, by its first event', async (t) => {
  const expected = await asNet(async (api) => {
    const { port } = await serve(t, api, (socket) => child.send('first', socket));
    const client = net.connect(port, HOST);
    client.write('a request');
    return answer(client);
  });
  assert.equal(expected, 'first: a request');
});

test('several at once: each waits for the one before it', async (t) => {
  const expected = await asNet(async (api) => {
    const accepted = [];
    const { port } = await serve(t, api, (socket) => {
      accepted.push(socket);
      if (accepted.length === 3) for (const each of accepted) child.send('one', each);
    });
    const clients = Array.from({ length: 3 }, () => net.connect(port, HOST).setEncoding('utf8'));
    for (const [n, client] of clients.entries()) client.write(`request ${n}`);
    return Promise.all(clients.map(answer));
  });
  assert.equal(expected.length, 3);
});

test('one that has been read and written, and counts for its server until it is gone', async (t) => {
  await asNet(async (api) => {
    got = [];
    const { server, port } = await serve(
      t,
      api,
      (socket) =>
        socket.once('data', (chunk) => {
          socket.pause();
          socket.write(`${chunk} read, `, () => child.send('then', socket));
        }),
      {},
    );
    const client = net.connect(port, HOST);
    client.write('one');
    const [reply] = await once(client, 'data');
    await arrived();
    client.write('two');
    const rest = await answer(client);
    return [String(reply), rest, server._connections];
  });
});

test('a socket that has connected to a server that knows nothing of this', async (t) => {
  const sockets = [];
  const { port } = await serve(t, net, (socket) => sockets.push(socket.on('error', () => {})), {});
  const expected = await asNet(async (api, options) => {
    got = [];
    const socket = api.connect({ port, host: HOST, ...options });
    await once(socket, 'connect');
    const { localPort } = socket;
    await until(() => api === net || repnet.info(socket).mode !== 'flow' || repnet.stats().foreignPeers > 0);
    child.send('sent', socket);
    await arrived();
    // Of two that raced it is the one that won.
    const accepted = sockets.find(({ remotePort }) => remotePort === localPort);
    accepted.write('from the server');
    return [got[0], await answer(accepted)];
  });
  assert.deepEqual(expected, [{ name: 'sent', got: true }, 'sent: from the server']);
});

test('the winner of a RepSYN race, by its client', async (t) => {
  let accepted;
  const { port } = await serve(t, repnet, (socket) => (accepted = socket), {});
  const socket = repnet.connect({ port, host: HOST, replicate: 'syn', peer: 'repnet' });
  await once(socket, 'connect');
  child.send('the client', socket);
  await arrived();
  await until(() => accepted !== undefined, 'the server has it');
  accepted.write('hello');
  assert.equal(await answer(accepted), 'the client: hello');
});

test('the winner of a RepSYN race, by its server: not with bytes unread, which came with its hello', async (t) => {
  let refused;
  const { port } = await serve(t, repnet, (socket) => {
    assert.throws(() => child.send('nothing', socket), { code: 'ERR_REPNET_HANDOVER' });
    refused = socket;
    socket.once('data', (chunk) => {
      socket.pause();
      socket.write(`${chunk}, `, () => child.send('by syn', socket));
    });
    socket.resume();
  });
  await lostSyns(t, (to) => to === port);
  const client = repnet.connect({ port, host: HOST, replicate: 'syn', peer: 'repnet' });
  client.write('a request');
  await arrived();
  assert.ok(refused instanceof repnet.Socket);
  client.write('another');
  assert.equal(await answer(client), 'a request, by syn: another');
});

test('a socket that http has upgraded', async (t) => {
  for (const create of [http.createServer, createHttpServer]) {
    got = [];
    const server = create({}, () => {});
    server.on('upgrade', (_, socket) => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: own\r\n\r\n');
      child.send('upgraded', socket);
    });
    await new Promise((resolve) => server.listen(0, HOST, resolve));
    t.after(() => server.close());
    const client = net.connect(server.address().port, HOST);
    client.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: own\r\n\r\n');
    await once(client, 'data');
    await arrived();
    client.write('mine');
    assert.equal(await answer(client), 'upgraded: mine');
  }
});

test('a socket that http has upgraded, when no second connection is expected any more', async (t) => {
  const server = createHttpServer({}, () => {});
  let upgraded;
  server.on('upgrade', (_, socket) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: own\r\n\r\n');
    upgraded = socket;
  });
  await new Promise((resolve) => server.listen(0, HOST, resolve));
  t.after(() => server.close());
  const client = net.connect(server.address().port, HOST);
  client.write('GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: own\r\n\r\n');
  await once(client, 'data');
  await until(() => repnet.info(upgraded).mode === false);
  child.send('later', upgraded);
  await arrived();
  client.write('mine');
  assert.equal(await answer(client), 'later: mine');
});

test('a second connection that comes for a socket that has gone is refused', async (t) => {
  const { port } = await serve(t, repnet, (socket) => child.send('gone', socket));
  const localPort = ownPort();
  const first = await raw(t, port, { localPort });
  await arrived();
  const second = await raw(t, port + 1, { localPort });
  second.socket.write(hello(second, port));
  await until(() => second.bytes.length >= 24, 'an answer');
  assert.equal(decodeAnswer(second.bytes).refusal, Refusal.late);
  first.socket.write('x');
  await until(() => first.ended, 'the other process answers');
  assert.equal(String(first.bytes), 'gone: x');
});

test('a flow on two connections is refused where it can be caught, and goes on', async (t) => {
  const { port, sockets } = await echoServer(t);
  const socket = repnet.connect({ port, host: HOST, replicate: 'flow', peer: 'repnet' });
  t.after(() => socket.destroy());
  assert.equal(await echo(socket, 'x'), 'x');
  await until(() => repnet.info(socket).paired && repnet.info(sockets[0]).paired);
  for (const each of [socket, sockets[0]])
    assert.throws(() => child.send('nothing', each), { code: 'ERR_REPNET_HANDOVER' });
  assert.equal(await echo(socket, 'y'), 'y');
});

test('behind an earlier socket, which the other process has not confirmed yet, it is refused at once, too', async (t) => {
  const { port, sockets } = await echoServer(t);
  const plain = await serve(t, net, (socket) => socket.on('error', () => {}).resume());
  const socket = repnet.connect({ port, host: HOST, replicate: 'flow', peer: 'repnet' });
  t.after(() => socket.destroy());
  assert.equal(await echo(socket, 'x'), 'x');
  await until(() => repnet.info(socket).paired && repnet.info(sockets[0]).paired);
  const earlier = net.connect(plain.port, HOST);
  await once(earlier, 'connect');
  child.send('nothing', earlier);
  assert.throws(() => child.send('nothing', socket), { code: 'ERR_REPNET_HANDOVER' });
  assert.equal(await echo(socket, 'y'), 'y');
  await arrived();
});

test('one that is connecting goes as a message without it', async (t) => {
  const { port } = await echoServer(t);
  const socket = repnet.connect({ port, host: HOST, replicate: 'flow', peer: 'repnet' });
  t.after(() => socket.destroy());
  child.send('connecting', socket);
  await until(() => got.some(({ name }) => name === 'connecting'));
  assert.deepEqual(got.at(-1), { name: 'connecting', got: false });
  assert.equal(await echo(socket, 'x'), 'x');
});

test('whoever reads the handle changes nothing', async (t) => {
  const { server, port, sockets } = await echoServer(t);
  const socket = repnet.connect({ port, host: HOST, replicate: 'flow', peer: 'repnet' });
  t.after(() => socket.destroy());
  assert.equal(await echo(socket, 'x'), 'x');
  await until(() => repnet.info(socket).paired && repnet.info(sockets[0]).paired);
  for (const each of [socket, sockets[0]]) {
    assert.equal(each._handle, each._handle);
    assert.equal(each._handle.isStreamBase, true);
    assert.equal(each._handle._consumed, true);
  }
  assert.equal(server._handle, server._handle);
  assert.equal(await echo(socket, 'y'), 'y');
  assert.deepEqual(
    [repnet.info(socket).mode, repnet.info(sockets[0]).mode, repnet.info(sockets[0]).paired],
    ['flow', 'flow', true],
  );
});

test('as one of the stdio of a child: a socket of one connection; one of two is refused', async (t) => {
  const expected = await asNet(async (api) => {
    const { port } = await serve(t, api, (socket) => {
      spawn('cat', { stdio: [socket, socket, 'inherit'] }).on('exit', () => socket.destroy());
    });
    const client = net.connect(port, HOST);
    client.end('for cat');
    return answer(client);
  });
  assert.equal(expected, 'for cat');
  const { port, sockets } = await echoServer(t);
  const socket = repnet.connect({ port, host: HOST, replicate: 'flow', peer: 'repnet' });
  t.after(() => socket.destroy());
  assert.equal(await echo(socket, 'x'), 'x');
  await until(() => repnet.info(socket).paired && repnet.info(sockets[0]).paired);
  assert.throws(() => spawn('cat', { stdio: [socket] }), { code: 'ERR_REPNET_HANDOVER' });
  assert.equal(await echo(socket, 'y'), 'y');
});

test('to a child that began before this was loaded', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [OLDER]);
  assert.equal(stdout, 'first: a request\n');
});
