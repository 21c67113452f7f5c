/**
 * setNoDelay, setKeepAlive and setTypeOfService, before, while and after a socket connects, and noDelay and keepAlive of constructors: what the
 * system is told of the connection that carries the application's stream is what net tells it.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import { after, beforeEach, test } from 'node:test';
import { forgetPeers } from '../dist/client/peers.js';
import repnet from '../dist/index.js';
import { newHandle } from '../dist/net-internals.js';
import { defaults, echo, echoServer, grown, hello, ownPort, raw, until } from './lib/support.mjs';

const HOST = '127.0.0.1';

/** What was set on each connection that this process has made or accepted. */
const told = new Map();
const native = Object.getPrototypeOf(newHandle());
for (const name of ['setNoDelay', 'setKeepAlive', 'setTypeOfService']) {
  const real = native[name];
  if (real === undefined) continue; // not in this version of Node
  native[name] = function (...args) {
    if (!told.has(this)) told.set(this, []);
    // Newer versions of Node say of more that it is not set.
    told.get(this).push([name, ...args.filter((arg) => arg !== undefined)]);
    return real.apply(this, args);
  };
  after(() => {
    native[name] = real;
  });
}

/** What holds in the end on each connection to `port` on which anything was set. */
const settled = (port) =>
  toldOf(port).map((calls) => Object.fromEntries(calls.map(([name, ...args]) => [name, args])));

/** What was set on connections to `port`, in order; only those of which anything was. */
function toldOf(port) {
  const found = [];
  for (const [handle, calls] of told) {
    const peer = {};
    if (handle.getpeername(peer) === 0 && peer.port === port) found.push(calls);
  }
  return found;
}

beforeEach(() => {
  forgetPeers();
  told.clear();
  Object.assign(defaults, { waitTimeout: 300, pairTimeout: 300 });
});

/** name: options of the constructor, and what is called before connect, right after it, and when it is established. */
const CASES = {
  'nothing is set': [{}, [], [], []],
  'by the constructor': [{ noDelay: true, keepAlive: true, keepAliveInitialDelay: 4_000 }, [], [], []],
  'before connect': [{}, [['setNoDelay'], ['setKeepAlive', true, 5_000]], [], []],
  'while connecting': [
    {},
    [],
    [
      ['setNoDelay', true],
      ['setKeepAlive', true, 5_000],
    ],
    [],
  ],
  'when established': [{}, [], [], [['setNoDelay'], ['setKeepAlive', true, 6_500]]],
  'the last word counts': [
    { noDelay: true },
    [
      ['setNoDelay', false],
      ['setKeepAlive', true, 1_000],
    ],
    [
      ['setKeepAlive', false],
      ['setKeepAlive', true, 7_000],
    ],
    [
      ['setNoDelay', true],
      ['setNoDelay'],
      ['setKeepAlive', true, 7_999],
      ['setNoDelay', false],
      ['setKeepAlive'],
    ],
  ],
};
// From Node 26 on.
if ('setTypeOfService' in net.Socket.prototype) {
  const probes = { enable: true, initialDelay: 3_000, interval: 2_000, count: 4 };
  Object.assign(CASES, {
    'a type of service, by the constructor': [{ typeOfService: 16 }, [], [], []],
    'a type of service, before connect': [{}, [['setTypeOfService', 16]], [], []],
    'a type of service, when established': [{}, [['setTypeOfService', 8]], [], [['setTypeOfService', 16]]],
    'probes: how often and how many, before connect': [{}, [['setKeepAlive', probes]], [], []],
    'probes: how often and how many, when established': [{}, [], [], [['setKeepAlive', probes]]],
  });
}

async function observe(t, Socket, options, port, [own, before, during, afterwards]) {
  told.clear();
  const socket = new Socket({ ...own, ...options });
  t.after(() => socket.destroy());
  const call = (calls) => {
    for (const [name, ...args] of calls) assert.equal(socket[name](...args), socket);
  };
  call(before);
  socket.connect({ port, host: HOST });
  call(during);
  await once(socket, 'connect');
  if (options?.replicate === 'flow') {
    const { flowsPaired } = repnet.stats();
    await echo(socket, 'x');
    await until(() => repnet.stats().flowsPaired >= flowsPaired);
  }
  call(afterwards);
  return settled(port);
}

for (const [name, steps] of Object.entries(CASES)) {
  test(`${name}: RepFlow, the first connection`, async (t) => {
    const { port } = await echoServer(t);
    const expected = await observe(t, net.Socket, {}, port, steps);
    const options = { replicate: 'flow', peer: 'repnet' };
    assert.deepEqual(await observe(t, repnet.Socket, options, port, steps), expected);
  });

  test(`${name}: RepSYN, and replication off`, async (t) => {
    const server = net.createServer((socket) => socket.on('error', () => {}).resume());
    await new Promise((resolve) => server.listen(0, HOST, resolve));
    t.after(() => server.close());
    const { port } = server.address();
    const expected = await observe(t, net.Socket, {}, port, steps);
    for (const options of [{ replicate: false }, { replicate: 'syn', peer: 'plain' }])
      assert.deepEqual(await observe(t, repnet.Socket, options, port, steps), expected, options.replicate);
  });
}

test('the second connection: never delayed, and kept alive as the first', async (t) => {
  const { port } = await echoServer(t);
  const socket = new repnet.Socket({ replicate: 'flow', peer: 'repnet' });
  t.after(() => socket.destroy());
  socket.setKeepAlive(true, 5_000).connect({ port, host: HOST });
  await echo(socket, 'x');
  await until(() => repnet.info(socket).paired);
  socket.setNoDelay(true).setNoDelay(false).setKeepAlive(false);
  assert.deepEqual(toldOf(port + 1), [
    [
      ['setNoDelay', true],
      ['setKeepAlive', true, 5],
      ['setKeepAlive', false, 0],
    ],
  ]);
});

test('a second connection that begins later has what was set before it began', async (t) => {
  const { port } = await echoServer(t);
  const silent = net.createServer((socket) => socket.on('error', () => {}).resume());
  await new Promise((resolve) => silent.listen(0, HOST, resolve));
  t.after(() => silent.close());
  const options = { replicate: 'flow', peer: 'repnet', copyDelay: 20, replicaPort: port + 1 };
  const socket = new repnet.Socket(options);
  t.after(() => socket.destroy());
  socket.connect({ port: silent.address().port, host: HOST });
  await once(socket, 'connect');
  socket.setKeepAlive(true, 9_000);
  await until(() => toldOf(port + 1).length === 1, 'the second connection is established');
  assert.deepEqual(toldOf(port + 1), [
    [
      ['setNoDelay', true],
      ['setKeepAlive', true, 9],
    ],
  ]);
});

test('a first connection that joins its second at the server has the options of the server', async (t) => {
  const { port } = await echoServer(t, { noDelay: true, keepAlive: true, keepAliveInitialDelay: 3_000 });
  const localPort = ownPort();
  // A server that has just begun to listen lets no second connection begin a flow.
  await grown();
  const second = await raw(t, port + 1, { localPort });
  second.socket.write(hello(second, port));
  await until(() => repnet.stats().flowsAccepted > 0);
  const { flowsPaired } = repnet.stats();
  await raw(t, port, { localPort });
  await until(() => repnet.stats().flowsPaired > flowsPaired, 'they are joined');
  const expected = { setNoDelay: [true], setKeepAlive: [true, 3] };
  assert.deepEqual(settled(localPort), [expected, expected]);
});
