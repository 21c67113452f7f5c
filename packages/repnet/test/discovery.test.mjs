/** RepSYN: how the client tells a server of this library, which must not get two connections for a flow, from an unmodified one. */
import assert from 'node:assert/strict';
import net from 'node:net';
import { beforeEach, test } from 'node:test';
import { forgetPeers, peerKey, recallPeer } from '../dist/client/peers.js';
import repnet from '../dist/index.js';
import { encodeAnswer } from '../dist/wire.js';
import './lib/far-away.mjs';
import { countingServer, defaults, echo, settle, until } from './lib/support.mjs';

const HOST = '127.0.0.1';
/** Questions this far apart (ms) count, and a server that refused two is asked again after so long. */
const [APART, ASK_AGAIN] = [1_000, 5_000];

beforeEach(() => {
  forgetPeers();
  repnet.resetStats();
  Object.assign(defaults, { waitTimeout: 300, pairTimeout: 300 });
});

/** Moves the time of day on. */
function clock(t) {
  const { now } = Date;
  let ahead = 0;
  t.mock.method(Date, 'now', () => now.call(Date) + ahead);
  return { pass: (ms) => (ahead += ms) };
}

async function flow(t, port, options = {}) {
  const socket = repnet.connect({ host: HOST, port, replicate: 'syn', ...options });
  t.after(() => socket.destroy());
  assert.equal(await echo(socket, 'x'), 'x');
  return socket;
}

/** A flow whose question is answered, or refused. */
async function asking(t, port, options) {
  const { foreignPeers } = repnet.stats();
  await flow(t, port, options);
  await until(() => repnet.stats().foreignPeers > foreignPeers, 'the question is refused');
}

/** The server at this port has refused what it takes to be known for an unmodified one. */
async function known(t, time, port) {
  await asking(t, port);
  time.pass(APART);
  await asking(t, port);
}

test('an unmodified server: two flows are plain, and what they ask is refused; the next race', async (t) => {
  const server = await countingServer(t, net);
  await known(t, clock(t), server.port);
  assert.deepEqual([server.accepted, repnet.stats().flowsSyn], [2, 0]);
  await flow(t, server.port);
  await until(() => server.accepted === 4, 'two connections');
  assert.equal(repnet.stats().flowsSyn, 1);
});

test('flows within a second of a refusal are plain, and ask nothing', async (t) => {
  const server = await countingServer(t, net);
  const time = clock(t);
  await asking(t, server.port);
  for (let i = 0; i < 5; i++) {
    await flow(t, server.port);
    await settle();
    time.pass(50);
  }
  assert.deepEqual([server.accepted, repnet.stats().foreignPeers], [6, 1]);
});

test('a known server is asked again beside the flows that race, and so is not forgotten while they go on', async (t) => {
  const server = await countingServer(t, net);
  const time = clock(t);
  await known(t, time, server.port);
  for (let i = 1; i <= 10; i++) {
    time.pass(ASK_AGAIN);
    await asking(t, server.port);
    await flow(t, server.port);
    assert.deepEqual([repnet.stats().flowsSyn, repnet.stats().foreignPeers], [2 * i, 2 + i]);
  }
});

test('an unknown RepNet server: never two connections for one flow', async (t) => {
  const server = await countingServer(t, repnet);
  for (let i = 1; i <= 5; i++) {
    await flow(t, server.port);
    await settle();
    assert.equal(server.accepted, i);
  }
  assert.equal(repnet.stats().flowsSyn, 4);
});

test('a RepNet server that closes or starts, and so refuses one question: never two connections for one flow', async (t) => {
  const time = clock(t);
  // To the client it looks like this one: its first port accepts, and its second refuses.
  const closing = await countingServer(t, net);
  await asking(t, closing.port);
  await closing.close();
  const server = await countingServer(t, repnet, closing.port);
  for (let i = 1; i <= 5; i++) {
    time.pass(APART);
    await flow(t, server.port);
    await settle();
    assert.equal(server.accepted, i);
  }
});

test('a RepNet server that is full: never two connections for one flow', async (t) => {
  const server = await countingServer(t, repnet);
  server.server.maxConnections = 1;
  for (let i = 1; i <= 5; i++) {
    const socket = await flow(t, server.port);
    await settle();
    assert.equal(server.accepted, i);
    socket.destroy();
    await until(() => server.sockets.size === 0);
  }
});

for (const [how, close] of [
  ['closes', (socket) => socket.end()],
  ['resets', (socket) => socket.resetAndDestroy()],
])
  test(`the second port ${how} without a word, as a busy RepNet server may: plain flows`, async (t) => {
    const time = clock(t);
    const server = await countingServer(t, net);
    const other = await countingServer(t, net, 0, close);
    for (let i = 1; i <= 5; i++) {
      await flow(t, server.port, { replicaPort: other.port });
      await settle();
      assert.equal(server.accepted, i);
      time.pass(APART);
    }
    assert.equal(repnet.stats().flowsSyn, 0);
  });

test('an unmodified server that was away is unknown when it is back', async (t) => {
  const time = clock(t);
  const away = await countingServer(t, net);
  await known(t, time, away.port);
  await away.close();
  await assert.rejects(flow(t, away.port), { code: 'ECONNREFUSED' });
  const server = await countingServer(t, repnet, away.port);
  for (let i = 1; i <= 5; i++) {
    await flow(t, server.port);
    await settle();
    assert.equal(server.accepted, i);
  }
});

test('one that is replaced by a RepNet server between two flows: the first of these is two to it, the others are one', async (t) => {
  const replaced = await countingServer(t, net);
  const time = clock(t);
  await known(t, time, replaced.port);
  time.pass(ASK_AGAIN);
  await replaced.close();
  const server = await countingServer(t, repnet, replaced.port);
  await flow(t, server.port);
  await until(() => server.accepted === 2, 'two connections');
  await until(
    () => recallPeer(peerKey(HOST, server.port, server.port + 1))?.kind === 'repnet',
    'it is known',
  );
  await settle();
  for (let i = 3; i <= 7; i++) {
    await flow(t, server.port);
    await settle();
    assert.equal(server.accepted, i);
  }
});

test('a RepNet server that answers a question late is taken for silent until then, and for good for one of this library', async (t) => {
  const slow = await countingServer(t, net);
  let answer;
  const answering = (socket) => {
    answer = () =>
      socket.end(encodeAnswer({ refusal: 0, flags: 0, threshold: 1_000, port: slow.port, version: 2 }));
  };
  const second = await countingServer(t, net, 0, answering);
  const options = { replicaPort: second.port };
  const kind = () => recallPeer(peerKey(HOST, slow.port, second.port))?.kind;
  await asking(t, slow.port, options);
  assert.equal(kind(), 'silent');
  answer();
  await until(() => kind() === 'repnet', 'it is known');
});

test('what flows of RepFlow find out is not enough for a race', async (t) => {
  const server = await countingServer(t, net);
  for (let i = 1; i <= 5; i++) {
    await flow(t, server.port, { replicate: 'flow' });
    await settle();
  }
  await flow(t, server.port);
  await settle();
  assert.deepEqual([server.accepted, repnet.stats().flowsSyn], [6, 0]);
});

test('the second port takes hellos without a word: plain flows, and no question for each of them', async (t) => {
  const server = await countingServer(t, net);
  const silent = await countingServer(t, net, 0, (socket) => socket.resume());
  const options = { replicaPort: silent.port };
  await asking(t, server.port, options);
  for (let i = 2; i <= 5; i++) {
    await flow(t, server.port, options);
    await settle();
    // Two would be two flows to a server of this library behind a filter.
    assert.deepEqual([server.accepted, silent.accepted], [i, 1]);
  }
  const told = await flow(t, server.port, { ...options, peer: 'plain' });
  assert.equal(repnet.info(told).mode, 'syn');
});

test('another service on the second port that answers: its answers are refusals', async (t) => {
  const server = await countingServer(t, net);
  const time = clock(t);
  const other = await countingServer(t, net, 0, (socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
  const options = { replicaPort: other.port };
  await asking(t, server.port, options);
  time.pass(APART);
  await asking(t, server.port, options);
  assert.equal(repnet.info(await flow(t, server.port, options)).mode, 'syn');
});

test("peer: 'repnet', and the second port is refused, as by a firewall: plain flows, one connection each", async (t) => {
  const server = await countingServer(t, net);
  for (let i = 1; i <= 5; i++) {
    await flow(t, server.port, { peer: 'repnet' });
    await settle();
    assert.equal(server.accepted, i);
  }
});

for (const replicate of ['flow', 'syn', false])
  test(`a flow whose second port refuses is counted once, replicate ${replicate}`, async (t) => {
    const server = await countingServer(t, net);
    repnet.resetStats();
    const socket = repnet.connect({ port: server.port, host: HOST, replicate, peer: 'repnet' });
    t.after(() => socket.destroy());
    assert.equal(await echo(socket, 'hello'), 'hello');
    const { flowsFlow, flowsSyn, flowsPlain } = repnet.stats();
    assert.equal(flowsFlow + flowsSyn + flowsPlain, 1);
  });
