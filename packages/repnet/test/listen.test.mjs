/** `listen(0)` finds two free ports side by side, also where clients hold many of those that the kernel leaves for them. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import net from 'node:net';
import { after, before, test } from 'node:test';
import repnet from '../dist/index.js';
import { until } from './lib/support.mjs';

const HOST = '127.0.0.1';
const MOST = 4_000;
const AT_ONCE = 100;
const range = '/proc/sys/net/ipv4/ip_local_port_range';

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

before(async () => {
  let low;
  let high;
  try {
    [low, high] = readFileSync(range, 'latin1').trim().split(/\s+/).map(Number);
  } catch {
    skip = `${range} cannot be read`;
    return;
  }
  target = net.createServer((socket) => {
    accepted.add(socket.on('error', () => {}).on('close', () => accepted.delete(socket)));
  });
  await new Promise((resolve) => target.listen({ host: HOST, port: 0, backlog: 2 * AT_ONCE }, resolve));
  // Linux gives listeners odd ports first, and clients even ones: all of them are beside a listener's.
  for (let n = 0; n < MOST; n += AT_ONCE) await Promise.all(Array.from({ length: AT_ONCE }, hold));
  const share = held.length / ((high - low + 1) / 2);
  if (share < 0.25) skip = `only ${held.length} connections could be held: too few descriptors or ports`;
});

after(async () => {
  // By RST, so that no port stays behind in TIME_WAIT.
  for (const socket of held) socket.resetAndDestroy();
  await until(() => accepted.size === 0, 'every held connection is gone');
  target?.close();
});

test('where clients hold more than a quarter of the ports beside, every listen(0) succeeds', async (t) => {
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
      const naive = net.createServer();
      await new Promise((resolve) => naive.listen(0, HOST, resolve));
      if (taken.has(naive.address().port + 1)) beside++;
      naive.close();
    }
  } finally {
    for (const server of servers) server.close();
  }
  t.diagnostic(`${beside} of 50 ports that the kernel offered had no free successor`);
  assert.ok(beside > 0, 'the test meets what it is about');
});

test('an explicit replicaPort is kept, or its being taken is an error', async (t) => {
  if (skip) return t.skip(skip);
  const { localPort } = held[0];
  const server = repnet.createServer({ replicate: 'flow', replicaPort: localPort });
  t.after(() => server.close());
  const error = await new Promise((resolve) =>
    server.once('error', resolve).listen(0, HOST, () => resolve(undefined)),
  );
  assert.equal(error?.code, 'EADDRINUSE');
  assert.equal(server.listening, false);
});
