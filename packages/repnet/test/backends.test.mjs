/**
 * A flow whose two connections reach two processes: a balancer in front of backends that know nothing of each other gives one the
 * first connection and another the second, and keeps the source port, so that neither can tell by it.
 */
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import repnet from '../dist/index.js';
import { ANSWER_BYTES, decodeAnswer, Refusal } from '../dist/wire.js';
import { startRelay } from './lib/relay.mjs';
import {
  data,
  defaults,
  echo,
  hello,
  messageOf,
  OWN_ADDRESS,
  ownPort,
  raw,
  settle,
  until,
} from './lib/support.mjs';

const HOST = OWN_ADDRESS;
const FLOWS = 20;

before(() => {
  Object.assign(defaults, { waitTimeout: 300, pairTimeout: 250 });
});

async function backend(t, options, listen) {
  const child = fork(fileURLToPath(new URL('lib/backend.mjs', import.meta.url)), [
    JSON.stringify(options),
    JSON.stringify({ host: HOST, ...listen }),
  ]);
  t.after(() => child.kill('SIGKILL'));
  const port = await messageOf(child);
  const report = async () => {
    child.send('report');
    return messageOf(child);
  };
  /** The report once it has `count` requests: the answer may have come from another process, with some under way to this. */
  const reportOf = async (count) => {
    let current;
    await until(async () => {
      current = await report();
      return current.requests.length >= count;
    }, `${count} requests have come`);
    return current;
  };
  return { port, report, reportOf };
}

/** Two processes, of which the balancer leads first connections to the one and second ones to the other. */
async function split(t, { faults = [], ...options }) {
  const base = ownPort();
  const relay = await startRelay({
    targetPort: base,
    targetHost: HOST,
    faultsFor: (_, copy) => faults.filter((fault) => fault.copy === copy),
  });
  t.after(() => relay.close());
  // What the balancer leads to is what clients dial, as each backend would say of itself if asked.
  const own = options.transparent ? { addresses: [`${relay.host}:${relay.port}`] } : {};
  const [first, second] = await Promise.all([
    backend(t, { ...own, replicaPort: base + 2_000 }, { port: base }),
    backend(t, { ...own, replicaPort: base + 1 }, { port: 0 }),
  ]);
  return { first, second, to: { host: relay.host, port: relay.port } };
}

async function requests(t, to) {
  for (let i = 0; i < FLOWS; i++) {
    const socket = repnet.connect({ replicate: 'flow', peer: 'repnet', ...to });
    t.after(() => socket.destroy());
    assert.equal(await echo(socket, `request ${i}`), `request ${i}`);
    socket.end();
  }
}

const all = Array.from({ length: FLOWS }, (_, i) => `request ${i}`);

test('the process that has the first connection has the flow, the other refuses the second', async (t) => {
  const { first, second, to } = await split(t, {});
  await requests(t, to);
  const [has, refuses] = [await first.report(), await second.report()];
  assert.deepEqual(has.requests, all);
  assert.deepEqual(refuses.requests, []);
  assert.equal(has.stats.flowsPaired + refuses.stats.flowsPaired, 0);
});

test('the first connection is slow: the other process does not start the flow meanwhile', async (t) => {
  const faults = [{ copy: 0, direction: 'up', kind: 'pause', at: 0, ms: 150 }];
  const { first, second, to } = await split(t, { faults });
  await requests(t, to);
  assert.deepEqual((await first.report()).requests, all);
  assert.deepEqual((await second.report()).requests, []);
});

test('the first connection never comes: no process has the flow, and the client is told', async (t) => {
  const faults = [{ copy: 0, direction: 'up', kind: 'stall', at: 0 }];
  const { first, second, to } = await split(t, { faults });
  const socket = repnet.connect({ replicate: 'flow', peer: 'repnet', ...to });
  t.after(() => socket.destroy());
  socket.on('error', () => {}).write('request');
  await until(() => repnet.stats().copiesFailed > 0, 'the second is refused');
  await settle();
  assert.deepEqual((await first.report()).requests, []);
  assert.deepEqual((await second.report()).requests, []);
});

test('a transparent balancer: a residual case, each process has a flow', async (t) => {
  const { first, second, to } = await split(t, { transparent: true });
  await requests(t, to);
  assert.deepEqual((await first.reportOf(FLOWS)).requests, all);
  assert.ok((await second.report()).requests.length > 0, 'with `addresses: []` it has none');
});

for (const [addresses, begins] of [
  ['own', true],
  ['none', false],
  ['named', true],
])
  test(`the second connection alone, ${addresses} address: ${begins ? 'a flow' : 'refused'}`, async (t) => {
    const base = ownPort();
    const options = { own: {}, none: { addresses: [] }, named: { addresses: [`${HOST}:${base}`] } }[
      addresses
    ];
    const server = await backend(t, options, { port: base });
    const second = await raw(t, base + 1, { host: HOST });
    second.socket.write(Buffer.concat([hello(second, base, { targetAddress: HOST }), data(0, 'request')]));
    await until(() => second.bytes.length >= ANSWER_BYTES);
    assert.equal(decodeAnswer(second.bytes).refusal, begins ? Refusal.none : Refusal.unknown);
    assert.deepEqual((await server.report()).requests, begins ? ['request'] : []);
  });
