/** Where second connections and questions go: to the address that the flow's own connection goes to, or nowhere. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import { beforeEach, test } from 'node:test';
import { legOptions, newAttempt } from '../dist/client/dialing.js';
import { forgetPeers, peerKey, recallPeer } from '../dist/client/peers.js';
import repnet from '../dist/index.js';
import { defaults, settle, until } from './lib/support.mjs';

const LOCAL = '127.0.0.1';
/** A host that is not this one, as far as the client knows. */
const REMOTE = '127.0.0.2';

beforeEach(() => {
  forgetPeers();
  Object.assign(defaults, { pairTimeout: 300, peer: 'auto' });
});

async function listen(t, server, port, host) {
  const sockets = new Set();
  server.on('connection', (socket) => sockets.add(socket.on('error', () => {}).resume()));
  server.listen(port, host);
  await once(server, 'listening');
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return server.address().port;
}

/** A server of this library here, and at the same port of another host an unmodified one beside another service. */
async function hosts(t) {
  const port = await listen(t, repnet.createServer(), 0, LOCAL);
  await listen(t, net.createServer(), port, REMOTE);
  let foreign = '';
  const service = net.createServer((socket) =>
    socket.on('data', (chunk) => (foreign += chunk.toString('latin1'))),
  );
  await listen(t, service, port + 1, REMOTE);
  return { port, foreign: () => foreign };
}

/** Counts what is connected to the second port here. */
function watchSecondPort(t, port) {
  const opened = [];
  const { connect } = net.Socket.prototype;
  t.mock.method(net.Socket.prototype, 'connect', function (...args) {
    const [options] = Array.isArray(args[0]) ? args[0] : args;
    if (options?.port === port + 1) opened.push(options.host);
    return connect.apply(this, args);
  });
  return opened;
}

test("a socket that its listener destroys at 'connect' asks nobody", async (t) => {
  const { port, foreign } = await hosts(t);
  const opened = watchSecondPort(t, port);
  const first = repnet.connect({ port, host: REMOTE, replicate: 'syn' }, () => first.destroy());
  await once(first, 'close');
  await settle();
  assert.deepEqual(opened, []);
  assert.equal(recallPeer(peerKey(REMOTE, port, port + 1)), undefined);
  const next = repnet.connect({ port, host: REMOTE, replicate: 'flow' }).on('error', () => {});
  t.after(() => next.destroy());
  next.write('not for the other service');
  await once(next, 'connect');
  await until(() => foreign().length > 0, 'the other service is asked');
  await settle();
  assert.doesNotMatch(foreign(), /not for the other service/);
});

test('a first connection of which the system does not tell any more where it went has no second', async (t) => {
  const { port } = await hosts(t);
  const seen = new net.Socket();
  seen.connect(port, LOCAL);
  await once(seen, 'connect');
  const handles = Object.getPrototypeOf(seen._handle);
  seen.destroy();
  t.mock.method(handles, 'getpeername', () => -107);
  const opened = watchSecondPort(t, port);
  // Two addresses, of which net chooses: the second connection goes where the first went.
  const addresses = [REMOTE, '127.0.0.3'].map((address) => ({ address, family: 4 }));
  const lookup = (_host, _options, done) => done(null, addresses);
  const socket = repnet.connect({ port, host: 'two.example', lookup, replicate: 'flow' });
  t.after(() => socket.destroy());
  socket.write('x');
  await once(socket, 'connect');
  await settle();
  assert.deepEqual(opened, []);
  assert.equal(recallPeer(peerKey('two.example', port, port + 1)), undefined);
});

test('no connection can be made to a host that is not known', () => {
  const target = { mode: 'flow', net: { port: 1, host: REMOTE }, replication: {} };
  for (const host of [undefined, null, '']) {
    assert.throws(() => legOptions(target, host, 2), TypeError);
    assert.throws(() => newAttempt(1, {}, target, { host, port: 2 }), TypeError);
  }
});
