/** Places of nodes, recordings of runs, and decoding of the module's answers. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { unpack } from '../dist/engine.js';
import { places } from '../dist/layout.js';
import { bytesOf, Recording } from '../dist/recording.js';

test('switches are placed above their neighbours and apart from each other', () => {
  const link = (a, b) => ({ a, b, rate: '1Gbps', tier: 0 });
  const graph = {
    hosts: 4,
    switches: 4,
    tiers: ['host', 'spine'],
    links: [link(0, 4), link(1, 4), link(2, 5), link(3, 5), link(4, 6), link(4, 7), link(5, 6), link(5, 7)],
    names: [],
  };
  const found = places(graph);
  assert.ok(found[0].y > found[4].y && found[4].y > found[6].y);
  assert.ok(found[0].x < found[1].x && found[4].x < found[5].x && found[6].x < found[7].x);
  const unlike = new Set(found.map(({ x, y }) => `${x} ${y}`));
  assert.equal(unlike.size, 8);
  assert.ok(found.every(({ x, y }) => x > 0 && x < 1 && y > 0 && y < 1));
});

test('sizes are converted to bytes', () => {
  assert.deepEqual(['100KB', '1MiB', '38B', '1.5GB'].map(bytesOf), [100_000, 1_048_576, 38, 1.5e9]);
});

test('a recording gives the flows finished by an instant, and in the end the unfinished ones', () => {
  const recording = new Recording(100_000);
  const frame = (now_ns, finished) => ({ now_ns, packet_hops: 0, queues: [now_ns], finished });
  recording.frames.push(
    frame(10, [[0, 100_000, 7, 5]]),
    frame(20, [[2, 100_001, 9, 5]]),
    frame(30, [[1, 5, 3, 3]]),
  );
  assert.equal(recording.known, 30);
  assert.equal(recording.at(9), undefined);
  assert.deepEqual(recording.at(29).queues, [20]);
  assert.deepEqual([...recording.finished(20, 'small')], [7]);
  assert.deepEqual([...recording.finished(20, 'all')], [7, 9]);
  assert.deepEqual([...recording.finished(99, 'small')], [3, 7]);
  const column = (cells, valid) => ({ kind: '', cells, valid, categories: null });
  const bytes = column(BigUint64Array.from([100_000n, 5n, 100_001n]), null);
  const fct = column(BigInt64Array.from([7n, 0n, 9n]), Uint8Array.from([1, 0, 1]));
  recording.result = { tables: { flows: { bytes, fct_ns: fct } } };
  assert.deepEqual([...recording.final('small')], [7, Number.POSITIVE_INFINITY]);
  assert.deepEqual([...recording.final('large')], [9]);
});

test('answers are decoded column by column', () => {
  const column = { name: 'n', kind: 'i64', rows: 2, at: 8, valid: 24, categories: null };
  const text = JSON.stringify({ tables: { flows: [column] }, counters: {}, facts: {}, series: [] });
  const header = new TextEncoder().encode(text.padEnd(Math.ceil((text.length + 4) / 8) * 8 - 4));
  const answer = new Uint8Array(4 + header.length + 26);
  const view = new DataView(answer.buffer);
  view.setUint32(0, header.length, true);
  answer.set(header, 4);
  view.setBigInt64(4 + header.length + 8, -5n, true);
  view.setBigInt64(4 + header.length + 16, 6n, true);
  answer[4 + header.length + 25] = 1;
  const { n } = unpack(answer).tables.flows;
  assert.deepEqual([...n.cells], [-5n, 6n]);
  assert.deepEqual([...n.valid], [0, 1]);
});
