/**
 * The first connection is over, by FIN or by a failure, and nobody has said where the stream ends: the peer is asked on the second, whenever
 * that is there. A server whose application has closed the flow says nothing of its end before.
 */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { Flow } from '../dist/flow/flow.js';
import { PRIMARY, REPLICA } from '../dist/flow/machine.js';
import repnet from '../dist/index.js';
import { controlRecord, Record, RecordParser } from '../dist/wire.js';
import { startFaultBench } from './lib/fault-bench.mjs';
import { memoryLeg } from './lib/memory-leg.mjs';
import { movedClock } from './lib/moved-clock.mjs';
import { data, settle } from './lib/support.mjs';

/** Longer than word of the end is waited for before it is asked for, and shorter than the second connection is. */
const WAIT = 10;

/** A client's flow whose connections take everything, and the offsets that it has asked about. */
function flowOf(t) {
  const clock = movedClock();
  t.after(() => clock.stop());
  const outer = { deliver: () => true, destroy() {}, touch() {} };
  const flow = new Flow(outer, { threshold: 1_000, lull: 50, pairTimeout: 1_000 });
  flow.peerKnown = true;
  const asked = [];
  const parser = new RecordParser();
  const sink = { onData() {}, onControl: (type, offset) => type === Record.query && asked.push(offset) };
  const legs = [PRIMARY, REPLICA].map((copy) => {
    const take = (parts, done) => {
      if (copy === REPLICA) for (const part of parts) parser.feed(part, sink);
      done?.();
    };
    return Object.assign(memoryLeg(copy), { send: take, post: take, finish() {} });
  });
  return { flow, legs, asked, clock };
}

const failure = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
const over = {
  'ends by FIN': (flow, first) => flow.legFin(first),
  fails: (flow, first) => flow.legLost(first, failure),
};

for (const [how, end] of Object.entries(over)) {
  test(`the first connection ${how} while the second is open: one question, after a moment`, (t) => {
    const { flow, legs, asked, clock } = flowOf(t);
    for (const leg of legs) flow.open(leg);
    flow.legData(legs[PRIMARY], Buffer.alloc(7));
    end(flow, legs[PRIMARY]);
    assert.deepEqual(asked, []);
    clock.tick(WAIT);
    assert.deepEqual(asked, [7]);
    clock.tick(WAIT);
    assert.deepEqual(asked, [7]);
  });

  test(`the first connection ${how} long before the second is established: one question when that is`, (t) => {
    const { flow, legs, asked, clock } = flowOf(t);
    flow.open(legs[PRIMARY]);
    flow.write(Buffer.from('request'), () => {});
    end(flow, legs[PRIMARY]);
    clock.tick(WAIT);
    flow.open(legs[REPLICA]);
    clock.tick(WAIT);
    assert.deepEqual(asked, [0]);
  });

  test(`the first connection ${how}, and word of the end is on the way: no question`, (t) => {
    const { flow, legs, asked, clock } = flowOf(t);
    flow.open(legs[PRIMARY]);
    end(flow, legs[PRIMARY]);
    clock.tick(WAIT);
    flow.open(legs[REPLICA]);
    flow.legData(legs[REPLICA], Buffer.concat([data(0, 'reply'), controlRecord(Record.end, 5)]));
    clock.tick(WAIT);
    assert.deepEqual(asked, []);
  });
}

test('a bare FIN is no end while a peer that has both connections may stand still: its reply after ten seconds is whole', (t) => {
  const { flow, legs, clock } = flowOf(t);
  const told = [];
  flow.outer.deliver = (chunk) => told.push(chunk === null ? 'end' : String(chunk));
  for (const leg of legs) flow.open(leg);
  flow.legFin(legs[PRIMARY]);
  clock.tick(10_000);
  assert.deepEqual(told, []);
  flow.legData(legs[REPLICA], Buffer.concat([data(0, 'reply'), controlRecord(Record.end, 5)]));
  assert.deepEqual(told, ['reply', 'end']);
});

test('… and is the end of the stream at twenty times pairTimeout, should the second path be dead', async (t) => {
  const { flow, legs, clock } = flowOf(t);
  const told = [];
  flow.outer.deliver = (chunk) => told.push(chunk === null ? 'end' : String(chunk));
  for (const leg of legs) flow.open(leg);
  flow.legFin(legs[PRIMARY]);
  clock.tick(19_990);
  await settle();
  assert.deepEqual(told, []);
  clock.tick(20);
  await settle();
  assert.deepEqual(told, ['end']);
});

/** Longer than a server holds the end of a first connection back for a second. */
const DELAY = 250;
let bench;
after(() => bench?.close());

test('hedged: the first connection is cut under the reply, and the second begins when the server has closed', async () => {
  bench = await startFaultBench({ connect: { copyDelay: DELAY }, pairTimeout: 2_000, waitTimeout: 10_000 });
  const { lateServed } = repnet.stats();
  const outcomes = [];
  for (const replyLength of [0, 1, 965, 32_646])
    for (const kind of ['cut', 'fin'])
      outcomes.push(
        await bench.flow([{ copy: 0, direction: 'up', kind, at: 16 + 9 }], { requestLength: 9, replyLength }),
      );
  for (const { complete, describe } of outcomes) assert.ok(complete, describe());
  // The test meets what it is about.
  assert.ok(repnet.stats().lateServed > lateServed);
});
