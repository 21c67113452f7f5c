/** A server whose clients do not replicate keeps no list of them, and notices the first that does. */
import assert from 'node:assert/strict';
import net from 'node:net';
import { beforeEach, test } from 'node:test';
import { forgetPeers } from '../dist/client/peers.js';
import repnet from '../dist/index.js';
import { PlainClients } from '../dist/server/hosts.js';
import { decodeAnswer, Refusal } from '../dist/wire.js';
import {
  data,
  defaults,
  echo,
  echoServer,
  grown,
  hello,
  ownPort,
  raw,
  settle,
  until,
} from './lib/support.mjs';

const MANY = 64;
const HOST = '127.0.0.1';

beforeEach(() => {
  forgetPeers();
  repnet.resetStats();
  Object.assign(defaults, { waitTimeout: 300, pairTimeout: 1_000 });
});

async function plainFlows(t, port, count) {
  for (let n = 0; n < count; n++) {
    const socket = net.connect(port, HOST);
    t.after(() => socket.destroy());
    assert.equal(await echo(socket, 'plain'), 'plain');
    socket.end();
    await new Promise((resolve) => socket.once('close', resolve));
  }
}

/** Whether the server lists a connection that comes now. */
async function lists(t, { port, sockets }) {
  const count = sockets.length;
  const { socket } = await raw(t, port);
  await until(() => sockets.length === count + 1);
  const { mode } = repnet.info(sockets[count]);
  socket.destroy();
  return mode === 'flow';
}

test('after 64 plain flows in a row connections are not listed; the next second connection ends that', async (t) => {
  const server = await echoServer(t);
  const { port } = server;
  await plainFlows(t, port, MANY - 1);
  assert.equal(await lists(t, server), true);
  assert.equal(await lists(t, server), false);
  assert.equal(repnet.stats().flowsAccepted, MANY + 1);
  await raw(t, port + 1);
  await settle();
  assert.equal(await lists(t, server), true);
  await plainFlows(t, port, 2 * MANY);
  assert.equal(await lists(t, server), true, 'for a minute');
});

test('the first flow that is replicated after all is whole, whichever of its connections was accepted first; the next goes by both', async (t) => {
  const { port, sockets } = await echoServer(t);
  await plainFlows(t, port, MANY + 5);
  sockets.length = 0;
  for (const [n, text] of ['the first of them', 'the second'].entries()) {
    const socket = repnet.connect({ host: HOST, port, replicate: 'flow', peer: 'repnet' });
    t.after(() => socket.destroy());
    assert.equal(await echo(socket, text), text);
    await until(() => repnet.stats().flowsPaired + repnet.stats().refused === n + 1);
    socket.write(text);
    await until(() => socket.bytesRead === 2 * text.length);
    socket.end();
    assert.equal(sockets.length, n + 1, 'one connection for each');
  }
});

test('a second connection whose first was passed by is refused at once, and begins no flow, whenever it comes within its patience', async (t) => {
  const { port, sockets } = await echoServer(t);
  await grown();
  await plainFlows(t, port, MANY + 5);
  const localPort = ownPort();
  const first = await raw(t, port, { localPort });
  first.socket.write('request');
  await until(() => first.bytes.length === 7);
  const count = sockets.length;
  const second = await raw(t, port + 1, { localPort });
  second.socket.write(Buffer.concat([hello(second, port, { patience: 60_000 }), data(0, 'request')]));
  await until(() => second.bytes.length > 0 || second.closed);
  assert.equal(decodeAnswer(second.bytes).refusal, Refusal.unknown);
  assert.equal(sockets.length, count);
});

test('so many, and so long', (t) => {
  let now = 0;
  t.mock.method(performance, 'now', () => now);
  const clients = new PlainClients();
  for (let n = 0; n < MANY; n++) assert.equal(clients.pass(), false);
  assert.equal(clients.pass(), true);
  assert.equal(clients.mayHavePassed(1_000), false);
  now = 500;
  assert.equal(clients.second(), true);
  assert.equal(clients.mayHavePassed(1_000), true);
  now = 1_501;
  assert.equal(clients.mayHavePassed(1_000), false);
  for (let n = 0; n < 2 * MANY; n++) assert.equal(clients.pass(), false);
  now = 60_501;
  assert.equal(clients.pass(), true);
  assert.equal(clients.second(), true);
  assert.equal(clients.second(), false);
});
