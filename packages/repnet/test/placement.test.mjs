/** The two connections of a flow dealt to different processes, or translated on the way: one 'connection' for one flow. */
import assert from 'node:assert/strict';
import net from 'node:net';
import { before, test } from 'node:test';
import repnet from '../dist/index.js';
import { startRelay } from './lib/relay.mjs';
import { notThisNode } from './lib/skips.mjs';
import { defaults, echo, grown, OWN_ADDRESS, ownPort } from './lib/support.mjs';

const HOST = OWN_ADDRESS;
const FLOWS = 20;

before(() => {
  Object.assign(defaults, { waitTimeout: 300, pairTimeout: 250 });
});

/** A server that answers each request once and counts connections that brought one. */
async function counting(t, options, listen = { port: 0, host: HOST }) {
  const counted = { requests: 0 };
  const server = repnet.createServer(options, (socket) => {
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      counted.requests++;
      socket.write(chunk);
    });
  });
  await new Promise((resolve, reject) => server.once('error', reject).listen(listen, resolve));
  t.after(() => server.close());
  return { counted, port: server.address().port };
}

async function flows(t, to) {
  for (let i = 0; i < FLOWS; i++) {
    const socket = repnet.connect({ replicate: 'flow', peer: 'repnet', ...to });
    t.after(() => socket.destroy());
    assert.equal(await echo(socket, `request ${i}`), `request ${i}`);
  }
}

test('a balancer deals the connections to two backends: one of them has the flow', async (t) => {
  // One backend's first port and another's second are what the balancer leads to.
  const base = ownPort();
  const one = await counting(t, { replicaPort: base + 2_000 }, { port: base, host: HOST });
  const other = await counting(t, { replicaPort: base + 1 });
  const relay = await startRelay({ targetPort: one.port, targetHost: HOST, faultsFor: () => [] });
  t.after(() => relay.close());
  await grown();
  await flows(t, { host: relay.host, port: relay.port });
  await grown();
  assert.equal(one.counted.requests + other.counted.requests, FLOWS);
});

/** Forwards to the two ports of a server by source ports of its own, as a translator of addresses does. */
async function translator(t, port) {
  const open = new Set();
  const listen = (offset, at) =>
    new Promise((resolve, reject) => {
      const server = net.createServer((client) => {
        const upstream = net.connect(port + offset, HOST);
        for (const socket of [client, upstream]) {
          open.add(socket);
          socket
            .on('error', () => {})
            .on('close', () => {
              client.destroy();
              upstream.destroy();
            });
        }
        client.pipe(upstream).pipe(client);
      });
      server.once('error', reject).listen(at, '127.0.0.3', () => resolve(server));
      t.after(() => server.close());
    });
  t.after(() => {
    for (const socket of open) socket.destroy();
  });
  for (;;) {
    const first = await listen(0, 0);
    const { port: at } = first.address();
    try {
      await listen(1, at + 1);
      return { host: '127.0.0.3', port: at };
    } catch {
      first.close();
    }
  }
}

test('behind address translation the flows are plain', async (t) => {
  const { counted, port } = await counting(t, {});
  const to = await translator(t, port);
  await grown();
  repnet.resetStats();
  await flows(t, to);
  await grown();
  assert.equal(counted.requests, FLOWS);
  assert.equal(repnet.stats().flowsPaired, 0);
});

test('processes that share a port by reusePort: each flow reaches one of them', async (t) => {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major < 23 || (major === 23 && minor < 1)) return t.skip(notThisNode('no reusePort'));
  const one = await counting(t, {}, { port: 0, host: HOST, reusePort: true });
  const other = await counting(t, {}, { port: one.port, host: HOST, reusePort: true });
  await grown();
  await flows(t, { host: HOST, port: one.port });
  await grown();
  assert.equal(one.counted.requests + other.counted.requests, FLOWS);
});
