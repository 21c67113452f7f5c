/** `copyDelay: 'p95'`: the delay that a destination's flows give, what it is that is waited for, and what becomes of it. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { afterEach, beforeEach, test } from 'node:test';
import { chooseDelay, forgetTimes, noteTime } from '../dist/client/hedge.js';
import { forgetPeers } from '../dist/client/peers.js';
import repnet from '../dist/index.js';
import { ERROR } from '../dist/memory/quantiles.js';
import { replicationOptions } from '../dist/options.js';
import { movedClock } from './lib/moved-clock.mjs';
import { startRelay } from './lib/relay.mjs';
import { defaults, echo, echoServer, until } from './lib/support.mjs';

const HOST = '127.0.0.1';

beforeEach(() => {
  forgetPeers();
  forgetTimes();
  repnet.resetStats();
  Object.assign(defaults, { waitTimeout: 300, pairTimeout: 1_000 });
});
afterEach(forgetTimes);

function target(options, { mode = 'flow', port = 7000 } = {}) {
  return { mode, net: { host: HOST, port }, replication: replicationOptions(options, undefined, port) };
}

/** The delay of a flow to the target. */
function delayOf(of) {
  chooseDelay(of);
  return of.replication.copyDelay;
}

/** A clock that stands still until it is set. */
function clock(t) {
  let now = 1_000;
  t.mock.method(performance, 'now', () => now);
  return { pass: (ms) => (now += ms) };
}

/** Flows that took so long. */
function took(t, of, times) {
  const time = clock(t);
  for (const ms of times) {
    const begun = performance.now();
    time.pass(ms);
    noteTime(of(), begun);
  }
  // Also forgets it: what is only restored is gone through again by the next.
  t.mock.reset();
}

test('1,024 destinations are remembered: the ones that were used last', (t) => {
  const at = (port) => () => target({ copyDelay: 'p95', coldDelay: 25 }, { port });
  const remembered = (port) => delayOf(at(port)()) !== 25;
  for (let port = 1; port <= 1_024; port++) took(t, at(port), port <= 2 ? Array(30).fill(8) : [8]);
  assert.deepEqual([remembered(1), remembered(2)], [true, true]);
  took(t, at(1), [8]);
  took(t, at(2_000), [8]);
  assert.deepEqual([remembered(1), remembered(2)], [true, false]);
  for (let port = 3_000; port < 5_000; port++) {
    took(t, at(port), [8]);
    took(t, at(1), [8]);
  }
  assert.ok(remembered(1));
});

test('a number until enough flows were seen, then the quantile of what they took', (t) => {
  const p95 = () => target({ copyDelay: 'p95', coldDelay: 25 });
  took(t, p95, Array(29).fill(8));
  assert.equal(delayOf(p95()), 25);
  took(t, p95, [8]);
  assert.ok(Math.abs(delayOf(p95()) - 8) <= Math.ceil(8 * ERROR));
  // Of 100 the slowest five are beyond it.
  took(t, p95, [...Array(65).fill(8), ...Array(5).fill(400)]);
  assert.ok(delayOf(p95()) < 10);
  took(t, p95, [400]);
  const delay = delayOf(p95());
  assert.ok(delay >= 400 * (1 - ERROR) && delay <= Math.ceil(400 * (1 + ERROR)), String(delay));
});

test('a rarer quantile needs more flows', (t) => {
  const p999 = () => target({ copyDelay: 'p99.9' });
  took(t, p999, Array(999).fill(50));
  assert.equal(delayOf(p999()), 10);
  took(t, p999, [50]);
  assert.ok(delayOf(p999()) >= 47);
});

test('each destination and mode has its own', (t) => {
  took(t, () => target({ copyDelay: 'p50' }), Array(50).fill(80));
  assert.ok(delayOf(target({ copyDelay: 'p50' })) >= 76);
  assert.equal(delayOf(target({ copyDelay: 'p50' }, { port: 7002 })), 10);
  assert.equal(delayOf(target({ copyDelay: 'p50' }, { mode: 'syn' })), 10);
});

test('flows that are quicker than a timer wait for the least there is, not for nothing', (t) => {
  took(t, () => target({ copyDelay: 'p99' }), Array(200).fill(0.04));
  assert.equal(delayOf(target({ copyDelay: 'p99' })), 1);
});

test('a number stays what it is, and nothing is remembered for it', (t) => {
  took(t, () => target({ copyDelay: 3 }), Array(100).fill(80));
  assert.equal(delayOf(target({ copyDelay: 3 })), 3);
  assert.equal(delayOf(target({ copyDelay: 'p95' })), 10);
});

for (const bad of ['p', 'p0', 'p0.5', 'p100', 'p99.99', '95', 'P95', 'p95 ', ''])
  test(`'${bad}' is no quantile`, () => {
    assert.throws(() => target({ copyDelay: bad }), {
      code: 'ERR_REPNET_OPTION',
      message: /^copyDelay is .*'p1' to 'p99.9'$/,
    });
    assert.throws(
      () => {
        defaults.copyDelay = bad;
      },
      { code: 'ERR_REPNET_OPTION' },
    );
  });

for (const replicate of ['flow', 'syn'])
  test(`${replicate}: flows to a server set the delay of the next ones`, async (t) => {
    const { port } = await echoServer(t);
    const options = { host: HOST, port, replicate, peer: 'repnet', copyDelay: 'p95', coldDelay: 60_000 };
    const delay = () => delayOf(target({ copyDelay: 'p95', coldDelay: 60_000 }, { mode: replicate, port }));
    for (let i = 0; i < 30; i++) {
      assert.equal(delay(), 60_000);
      const socket = repnet.connect(options);
      assert.equal(await echo(socket, 'x'), 'x');
      socket.destroy();
      await once(socket, 'close');
    }
    assert.ok(delay() < 60_000, String(delay()));
    assert.equal(repnet.stats().copiesIssued, 0);
  });

test('hedged: a flow that is answered in time ends when the server ends it, not when the copy would be due', async (t) => {
  const server = repnet.createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => socket.end('reply'));
  });
  await new Promise((resolve) => server.listen(0, HOST, resolve));
  t.after(() => server.close());
  // The clock stands still, so that the delay is never over.
  const still = movedClock();
  t.after(() => still.stop());
  const { port } = server.address();
  const options = { replicate: 'flow', peer: 'repnet', copyDelay: 1_000 };
  const socket = repnet.connect({ host: HOST, port, ...options });
  t.after(() => socket.destroy());
  let reply = '';
  let ended = false;
  socket.on('data', (chunk) => (reply += chunk)).on('end', () => (ended = true));
  socket.write('request');
  await until(() => ended, 'the end');
  assert.equal(reply, 'reply');
  assert.equal(repnet.stats().copiesIssued, 0);
});

test('a copy that brings the reply first is counted', async (t) => {
  const { port } = await echoServer(t);
  let goOn;
  const told = new Promise((resolve) => (goOn = resolve));
  const relay = await startRelay({
    targetPort: port,
    // The first connection brings no reply before the test has seen that of the second.
    faultsFor: (_, copy) =>
      copy === 0 ? [{ copy, direction: 'down', at: 0, kind: 'pause', until: told }] : [],
  });
  t.after(() => relay.close());
  const socket = repnet.connect({ host: relay.host, port: relay.port, replicate: 'flow', peer: 'repnet' });
  t.after(() => socket.destroy());
  assert.equal(await echo(socket, 'x'), 'x');
  const { copiesIssued, copiesWon } = repnet.stats();
  assert.deepEqual([copiesIssued, copiesWon], [1, 1]);
  goOn();
  await until(() => repnet.stats().bytesDuplicate > 0, 'the first has brought it, too');
  const { bytesWasted, bytesDuplicate, bytesDoubled } = repnet.stats();
  assert.equal(bytesWasted, bytesDuplicate + bytesDoubled);
});

/** A server that answers nothing, behind handshakes that are done at once. */
async function silentServer(t) {
  const server = repnet.createServer((socket) => socket.on('error', () => {}).resume());
  await new Promise((resolve) => server.listen(0, HOST, resolve));
  t.after(() => server.close());
  return server.address().port;
}

for (const [hedgeOn, copies] of [
  ['handshake', 0],
  ['first-byte', 1],
  [undefined, 1],
])
  test(`hedgeOn ${hedgeOn}: of a flow that is established and not answered, ${copies} second connections`, async (t) => {
    const port = await silentServer(t);
    const clock = movedClock();
    t.after(() => clock.stop());
    const options = { replicate: 'flow', peer: 'repnet', copyDelay: 1_000, hedgeOn };
    const socket = repnet.connect({ host: HOST, port, ...options });
    t.after(() => socket.destroy());
    await once(socket, 'connect');
    socket.write('request');
    clock.tick(1_000);
    assert.equal(repnet.stats().copiesIssued, copies);
  });

test("hedgeOn 'handshake': the quantile is that of handshakes, apart from that of first bytes", async (t) => {
  const port = await silentServer(t);
  const options = { copyDelay: 'p50', coldDelay: 60_000, hedgeOn: 'handshake' };
  const delay = (of) => delayOf(target({ ...options, ...of }, { port }));
  for (let i = 0; i < 30; i++) {
    assert.equal(delay(), 60_000);
    const socket = repnet.connect({ host: HOST, port, replicate: 'flow', peer: 'repnet', ...options });
    await once(socket, 'connect');
    socket.destroy();
    await once(socket, 'close');
  }
  assert.ok(delay() < 60_000);
  assert.equal(delay({ hedgeOn: 'first-byte' }), 60_000);
});
