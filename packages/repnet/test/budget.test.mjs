/** The replication budget: what is sent a second time, and which second connections are made, within a fraction. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import { afterEach, beforeEach, test } from 'node:test';
import { forgetPeers } from '../dist/client/peers.js';
import repnet from '../dist/index.js';
import { Archive } from '../dist/memory/archive.js';
import { begun, resetBudget, takeConnection } from '../dist/memory/budget.js';
import { Remains } from '../dist/server/remains.js';
import { RecordParser } from '../dist/wire.js';
import { startRelay } from './lib/relay.mjs';
import { defaults, echo, echoServer, until } from './lib/support.mjs';

const UNLIMITED = { bytes: Number.POSITIVE_INFINITY, connections: Number.POSITIVE_INFINITY };

function budget(limits) {
  resetBudget();
  defaults.budget = { ...UNLIMITED, ...limits };
}

beforeEach(() => {
  forgetPeers();
  repnet.resetStats();
  Object.assign(defaults, { waitTimeout: 300, pairTimeout: 500 });
});
afterEach(() => budget(UNLIMITED));

const dial = (t, port, options = {}) => {
  const socket = repnet.connect({ host: '127.0.0.1', port, replicate: 'flow', peer: 'repnet', ...options });
  t.after(() => socket.destroy());
  return socket;
};

test('a budget of no bytes: whichever connection comes first, nothing is sent a second time', async (t) => {
  budget({ bytes: 0 });
  const REQUEST = 20_000;
  const REPLY = 50_000;
  const server = repnet.createServer((socket) => {
    let read = 0;
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      read += chunk.length;
      if (read === REQUEST) socket.end(Buffer.alloc(REPLY));
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  for (const late of [undefined, 0, 1]) {
    let passed = 0;
    const relay = await startRelay({
      targetPort: server.address().port,
      faultsFor: (_, copy) =>
        copy === late ? [{ copy, direction: 'up', at: 0, kind: 'pause', ms: 20 }] : [],
      onBytes: (_source, _copy, _direction, bytes) => (passed += bytes.length),
    });
    t.after(() => relay.close());
    const FLOWS = 10;
    for (let i = 0; i < FLOWS; i++) {
      const socket = dial(t, relay.port, { host: relay.host });
      socket.end(Buffer.alloc(REQUEST));
      let read = 0;
      socket.on('data', (chunk) => (read += chunk.length));
      await once(socket, 'close');
      assert.equal(read, REPLY);
    }
    // Hello, answer and records take some bytes, too: no more than this of a flow.
    assert.ok(passed <= FLOWS * (REQUEST + REPLY + 500), `${passed} bytes of ${FLOWS} flows, late: ${late}`);
  }
  assert.equal(repnet.stats().bytesDoubled, 0);
  assert.ok(repnet.stats().overBudget > 0);
});

test('a budget of bytes is spent up to its fraction of all bytes written, and not beyond', async (t) => {
  const { port } = await echoServer(t);
  const socket = dial(t, port);
  await echo(socket, 'first');
  await until(() => repnet.stats().flowsPaired === 1);
  budget({ bytes: 0.25 });
  repnet.resetStats();
  let carried = 0;
  const allowed = () => 0.25 * Math.max(carried, 1024 * 1024);
  for (let i = 0; i < 60; i++) {
    await echo(socket, 'x'.repeat(60_000));
    carried += 2 * 60_000;
    assert.ok(repnet.stats().bytesDoubled <= allowed(), `${repnet.stats().bytesDoubled} of ${allowed()}`);
  }
  assert.ok(repnet.stats().bytesDoubled > 0.9 * allowed(), `${repnet.stats().bytesDoubled} of ${allowed()}`);
});

for (const kind of ['framed', 'plain'])
  test(`a closed flow's ${kind} latecomer beyond the budget: what it does not get is not hidden`, () => {
    budget({ bytes: 0 });
    const archive = new Archive();
    archive.push(Buffer.from('the reply'));
    const remains = new Remains({ archive, total: 9, endedAt: undefined });
    const sent = [];
    const seen = [];
    const leg = {
      send: (parts) => sent.push(...parts),
      finish: () => seen.push('finish'),
      abort: () => seen.push('abort'),
      close() {},
      unref() {},
      resumeReading() {},
    };
    remains.serve(leg, kind === 'framed' ? Buffer.from('answer') : undefined, undefined);
    if (kind === 'plain') {
      assert.deepEqual(
        [seen, sent],
        [['abort'], []],
        'an end without the bytes would be that of an empty stream',
      );
      return;
    }
    assert.equal(sent.shift().toString(), 'answer');
    const records = [];
    new RecordParser().feed(Buffer.concat(sent), {
      onData: () => records.push('data'),
      onControl: (type, offset) => records.push([type, offset]),
    });
    assert.deepEqual(records, [[4, 9]], 'the total alone');
    remains.legFin();
  });

test('a budget of no connections sends every flow plain', async (t) => {
  const { port } = await echoServer(t);
  budget({ connections: 0 });
  assert.equal(await echo(dial(t, port), 'plain'), 'plain');
  assert.equal(await echo(dial(t, port, { replicate: 'syn' }), 'plain'), 'plain');
  const { flowsFlow, flowsSyn, flowsPlain, overBudget } = repnet.stats();
  assert.deepEqual([flowsFlow, flowsSyn, flowsPlain, overBudget], [0, 0, 2, 2]);
});

test('a budget of connections is kept over many flows', async (t) => {
  const { port } = await echoServer(t);
  budget({ connections: 0.25 });
  // At the beginning as if there had been twenty flows.
  for (let i = 1; i <= 100; i++) {
    assert.equal(await echo(dial(t, port), 'x'), 'x');
    assert.equal(repnet.stats().flowsFlow, Math.min(i, Math.floor(0.25 * Math.max(i, 20))));
  }
});

test('a flow that has no second connection takes none from the budget', async (t) => {
  const plain = net.createServer((socket) => socket.pipe(socket)).listen(0, '127.0.0.1');
  await once(plain, 'listening');
  t.after(() => plain.close());
  const { port } = await echoServer(t);
  budget({ connections: 0.25 });
  for (let i = 0; i < 20; i++) {
    const socket = dial(t, plain.address().port, { peer: 'plain' });
    assert.equal(await echo(socket, 'x'), 'x');
    socket.destroy();
  }
  for (let i = 0; i < 20; i++) {
    // Hedged, and the first is quick: the second is not made.
    const socket = dial(t, port, { copyDelay: 10_000 });
    assert.equal(await echo(socket, 'x'), 'x');
    socket.destroy();
  }
  assert.equal(repnet.stats().overBudget, 0);
  for (let i = 0; i < 10; i++) assert.equal(await echo(dial(t, port), 'x'), 'x');
  assert.equal(repnet.stats().overBudget, 0, 'a quarter of forty flows is still whole');
});

test('a hedged flow beyond the budget waits for its first connection alone', async (t) => {
  const server = repnet.createServer((socket) => socket.on('error', () => {}).resume());
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  budget({ connections: 0 });
  const socket = dial(t, server.address().port, { copyDelay: 5 });
  socket.write('no answer');
  await until(() => repnet.stats().overBudget === 1, 'the second connection is due');
  assert.equal(repnet.stats().flowsPaired, 0);
  assert.equal(socket.destroyed, false);
});

/** Flows that all ask for a second connection: how many get one. */
function copies(flows) {
  let taken = 0;
  for (let i = 0; i < flows; i++) {
    begun();
    if (takeConnection()) taken++;
  }
  return taken;
}

test('a service with little traffic keeps to its budget, too', () => {
  budget({ connections: 0.05 });
  assert.equal(copies(10), 1);
  budget({ connections: 0.01 });
  assert.equal(copies(99), 0);
  assert.equal(copies(1), 1);
});

test('flows that went without a copy long ago are no licence for a burst', () => {
  budget({ connections: 0.05 });
  for (let i = 0; i < 100_000; i++) begun();
  // Of the last 1,024 flows, of which those before the burst have none.
  assert.ok(copies(500) <= 0.05 * 1_024);
  assert.ok(copies(10_000) <= 0.05 * 12_000);
});

test('in every second of an outage extra connections are within the budget and its burst', () => {
  const BURST = 10;
  const FRACTION = 0.05;
  budget({ connections: FRACTION });
  // Seconds of flows and of hedges that are due: usual ones, then everything is ten times slower and each flow wants a copy.
  const seconds = [
    ...Array(20).fill({ flows: 1_000, share: 0.03 }),
    ...Array(30).fill({ flows: 100, share: 1 }),
    ...Array(5).fill({ flows: 0, share: 1 }),
    ...Array(20).fill({ flows: 1_000, share: 1 }),
  ];
  const extra = seconds.map(({ flows, share }) => {
    let taken = 0;
    for (let i = 0; i < flows; i++) {
      begun();
      if ((i + 1) * share - taken >= 1 && takeConnection()) taken++;
    }
    return taken;
  });
  for (let from = 0; from < seconds.length; from++) {
    let [flows, taken] = [0, 0];
    for (let at = from; at < seconds.length; at++) {
      flows += seconds[at].flows;
      taken += extra[at];
      assert.ok(taken <= FRACTION * flows + BURST, `${taken} of ${flows}, seconds ${from} to ${at}`);
    }
  }
  // And they are not refused what they may have.
  assert.ok(extra[25] >= FRACTION * 100 - 1);
  assert.ok(extra.at(-1) >= FRACTION * 1_000 - 1);
});
