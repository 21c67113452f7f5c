import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { fixedSize, parseCdf } from '../dist/cdf.js';
import { firstMismatch, payloadSlice } from '../dist/payload.js';
import { exponential, randomStream } from '../dist/random.js';
import { arrivalRate, closedLoop, openLoop, parseTrace } from '../dist/schedule.js';

const workload = (changes = {}) => ({
  sizes: parseCdf('100 0\n1000 1', 's'),
  servers: 3,
  fanIn: 1,
  direction: 'up',
  seed: 7,
  stream: 'client',
  flows: 1000,
  duration: Infinity,
  ...changes,
});

test('a stream is the same on every machine', () => {
  const stream = randomStream(1, 'client', 'sizes');
  assert.deepEqual([stream.uint32(), stream.uint32(), stream.uint32()], [808379735, 2077457767, 1239624166]);
});

test('streams of other names are other streams', () => {
  const first = (entity, purpose, seed = 1) => randomStream(seed, entity, purpose).uint32();
  assert.equal(
    new Set([first('a', 'b'), first('a', 'c'), first('ab', ''), first('', 'ab'), first('a', 'b', 2)]).size,
    5,
  );
});

test('exponential gaps have their mean', () => {
  const stream = randomStream(1, 'x', 'gaps');
  let sum = 0;
  for (let i = 0; i < 100_000; i++) sum += exponential(stream, 5);
  assert.ok(Math.abs(sum / 100_000 - 5) < 0.05); // 3 standard errors
});

test('the same seed and stream give the same flows, another seed others', () => {
  const flows = (seed) => JSON.stringify([...openLoop(workload({ seed }), 1000)]);
  assert.equal(flows(7), flows(7));
  assert.notEqual(flows(7), flows(8));
});

test('arrivals are ordered and their rate loads the link as asked', () => {
  const load = workload({ flows: 20_000 });
  const groups = [...openLoop(load, arrivalRate(load, 0.5, 1e9))];
  const times = groups.map(([flow]) => flow.at);
  assert.deepEqual(
    times,
    [...times].sort((a, b) => a - b),
  );
  const bits = groups.flat().reduce((sum, flow) => sum + flow.bytes * 8, 0);
  assert.ok(Math.abs(bits / (times.at(-1) / 1e9) / 1e9 - 0.5) < 0.02);
});

test('the duration bounds arrivals and changes none of them', () => {
  const all = [...openLoop(workload(), 1000)].flat();
  const early = [...openLoop(workload({ duration: 0.2e9 }), 1000)].flat();
  assert.ok(early.length > 100 && early.length < all.length);
  assert.deepEqual(early, all.slice(0, early.length));
});

test('a group sent up goes to one server, a group fetched down comes from different ones', () => {
  const [up] = openLoop(workload({ fanIn: 3 }), 1);
  const [down] = openLoop(workload({ fanIn: 3, direction: 'down' }), 1);
  assert.equal(new Set(up.map(({ to }) => to)).size, 1);
  assert.deepEqual(down.map(({ to }) => to).sort(), [0, 1, 2]);
  assert.equal(new Set(down.map(({ bytes }) => bytes)).size, 1);
  assert.equal(new Set(down.map(({ key }) => key)).size, 3);
});

test('closed-loop workers share the flows out and no group is cut', () => {
  const ids = [0, 1, 2].flatMap((worker) =>
    [...closedLoop(workload({ flows: 20, fanIn: 2 }), worker, 3)].flat().map(({ id }) => id),
  );
  assert.deepEqual(
    ids.sort((a, b) => a - b),
    Array.from({ length: 20 }, (_, id) => id),
  );
});

test('one worker more changes no flow of the others', () => {
  const sizes = (workers) =>
    [...closedLoop(workload({ flows: 100 }), 0, workers)]
      .slice(0, 10)
      .flat()
      .map(({ bytes }) => bytes);
  assert.deepEqual(sizes(4), sizes(5));
});

test('a trace is read in order of time, for one source', () => {
  const text = 'id,src,to,bytes,start_ns\n4,a,1,10,500\n5,b,0,20,100\n6,a,2,30,200\n';
  const flows = parseTrace(text, 't.csv', workload(), 'a');
  assert.deepEqual(
    flows.map(({ id, to, bytes, at }) => [id, to, bytes, at]),
    [
      [6, 2, 30, 200],
      [4, 1, 10, 500],
    ],
  );
});

test('the duration bounds a trace, too', () => {
  const flows = parseTrace('start_ns,bytes\n500,10\n501,20\n100,30\n', 't.csv', workload({ duration: 500 }));
  assert.deepEqual(
    flows.map(({ at }) => at),
    [100, 500],
  );
});

test('a source of a trace that names none is refused', () => {
  assert.throws(() => parseTrace('start_ns,bytes\n1,2\n', 't.csv', workload(), 'a'), {
    code: 'ERR_TRACE',
    message: /^t.csv:1: no column 'src'/,
  });
});

for (const [what, text, message] of [
  ['a missing column', 'id,bytes\n1,2\n', /no column 'start_ns'/],
  ['a bad number', 'start_ns,bytes\n1,2\n1,many\n', /row 2: bytes 'many'/],
  ['a server that is not there', 'start_ns,bytes,to\n1,2,3\n', /row 1: to 3, but there are 3 servers/],
  ['an empty flow', 'start_ns,bytes\n1,0\n', /row 1: bytes must be at least 1/],
]) {
  test(`a trace with ${what} is refused with its place`, () => {
    assert.throws(() => parseTrace(text, 't.csv', workload()), { code: 'ERR_TRACE', message });
  });
}

test('payload is right at every offset and a changed, lost or doubled byte is found where it is', () => {
  fc.assert(
    fc.property(
      fc.nat(0xffffffff),
      fc.nat(2_000_000),
      fc.integer({ min: 2, max: 200_000 }),
      fc.nat(),
      (key, offset, length, place) => {
        const parts = [];
        for (let at = 0; at < length; ) {
          const slice = payloadSlice(key, offset + at, offset + length);
          parts.push(slice);
          at += slice.length;
        }
        const payload = Buffer.concat(parts);
        assert.equal(payload.length, length);
        assert.equal(firstMismatch(key, offset, payload), -1);
        const index = place % length;
        payload[index] ^= 1;
        assert.equal(firstMismatch(key, offset, payload), index);
        payload[index] ^= 1;
        assert.notEqual(firstMismatch(key, offset + 1, payload), -1);
      },
    ),
    { numRuns: 50 },
  );
});

test('every flow of a fixed size has its own payload', () => {
  const keys = [...openLoop(workload({ sizes: fixedSize(10) }), 1)].flat().map(({ key }) => key);
  assert.equal(new Set(keys).size, keys.length);
});
