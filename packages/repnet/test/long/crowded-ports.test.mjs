/** `listen(0)` finds two free ports side by side where clients hold many of those that the kernel leaves for them. */
import assert from 'node:assert/strict';
import net from 'node:net';
import { after, before, test } from 'node:test';
import repnet from '../../dist/index.js';
import { tooBusy } from '../lib/skips.mjs';
import { until } from '../lib/support.mjs';

const HOST = '127.0.0.1';
const MOST = 7_000;
const AT_ONCE = 100;
/** Of the ports that the kernel offers to one who listens, so many have a successor that is held; fewer than the least show nothing. */
const WANTED = 0.25;
const LEAST = 0.1;

const held = [];
const accepted = new Set();
let target;
let skip = false;

/** Holds a connection from a port of the kernel's choice, which is not to be shared as one that was bound explicitly is. */
function hold() {
  return new Promise((resolve) => {
    const socket = net.connect({ host: HOST, port: target.address().port });
    socket.once('connect', () => {
      held.push(socket.on('error', () => {}));
      resolve();
    });
    socket.once('error', resolve);
  });
}

/** A port that the kernel offers to one who listens and takes the first. */
async function offered() {
  const naive = net.createServer();
  await new Promise((resolve, reject) => naive.once('error', reject).listen(0, HOST, resolve));
  const { port } = naive.address();
  await new Promise((resolve) => naive.close(resolve));
  return port;
}

/** Which share of those has a successor that is held. */
async function shareBeside() {
  const taken = new Set(held.map(({ localPort }) => localPort));
  let beside = 0;
  for (let n = 0; n < 200; n++) if (taken.has((await offered()) + 1)) beside++;
  return beside / 200;
}

before(async () => {
  target = net.createServer((socket) => {
    accepted.add(socket.on('error', () => {}).on('close', () => accepted.delete(socket)));
  });
  await new Promise((resolve) => target.listen({ host: HOST, port: 0, backlog: 2 * AT_ONCE }, resolve));
  // Linux gives listeners odd ports first, and of those the lower half of its range; clients even ones, from a place of its choice on. So
  // how many have to be held until they are beside a listener's differs.
  let share = 0;
  for (let n = 0; n < MOST && share < WANTED; n += AT_ONCE) {
    await Promise.all(Array.from({ length: AT_ONCE }, hold));
    if (n % (5 * AT_ONCE) === 0) share = await shareBeside();
  }
  if (share < LEAST)
    skip = tooBusy(`${held.length} connections are beside too few ports: too few descriptors or ports`, 1);
});

after(async () => {
  // By RST, so that no port stays behind in TIME_WAIT.
  for (const socket of held) socket.resetAndDestroy();
  await until(() => accepted.size === 0, 'every held connection is gone');
  target?.close();
});

test('where clients hold a quarter of the ports beside those that the kernel offers, every listen(0) succeeds', async (t) => {
  if (skip) return t.skip(skip);
  t.diagnostic(`${held.length} connections held`);
  const taken = new Set(held.map((socket) => socket.localPort));
  let beside = 0;
  const servers = [];
  try {
    for (let i = 0; i < 50; i++) {
      const server = repnet.createServer({ replicate: 'flow' });
      servers.push(server);
      await new Promise((resolve, reject) => server.once('error', reject).listen(0, HOST, resolve));
      const { port } = server.address();
      assert.equal(server.replicaAddress().port, port + 1);
      assert.ok(!taken.has(port) && !taken.has(port + 1));
      // What one who takes the first port the kernel offers would have met.
      if (taken.has((await offered()) + 1)) beside++;
    }
  } finally {
    for (const server of servers) server.close();
  }
  t.diagnostic(`${beside} of 50 ports that the kernel offered had no free successor`);
  for (let tries = 0; beside === 0 && tries < 1_000; tries++) if (taken.has((await offered()) + 1)) beside++;
  assert.ok(beside > 0, 'the test meets what it is about');
});
