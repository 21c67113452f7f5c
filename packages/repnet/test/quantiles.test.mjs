/** The sketch behind `copyDelay: 'p95'`: its error bound, its window and its bounds, for any times. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ERROR, LEAST, MOST, Quantiles, WINDOW } from '../dist/memory/quantiles.js';

/** From less than a microsecond to beyond every timer. */
const time = fc.double({ min: -4, max: 9, noNaN: true }).map((exponent) => 10 ** exponent);
const share = fc.double({ min: 0, max: 1, noNaN: true });
const runs = { numRuns: 500, seed: 17 };
/** Of what floating-point numbers lose. */
const SLACK = 1e-9;

function filled(times) {
  const sketch = new Quantiles();
  for (const each of times) sketch.add(each);
  return sketch;
}

/** The one of `times` that has the rank. */
function exactly(times, q) {
  const sorted = [...times].sort((a, b) => a - b);
  return sorted[Math.max(1, Math.ceil(q * times.length)) - 1];
}

test('a quantile is that of the times seen, within the error', () => {
  fc.assert(
    fc.property(fc.array(time, { minLength: 1, maxLength: 200 }), share, (times, q) => {
      const told = filled(times).at(q);
      const right = Math.min(Math.max(exactly(times, q), LEAST), MOST);
      assert.ok(Math.abs(told - right) <= right * (ERROR + SLACK), `${told}, not ${right}`);
    }),
    runs,
  );
});

test('quantiles are in order, and say the same however the times were', () => {
  fc.assert(
    fc.property(fc.array(time, { minLength: 1, maxLength: 100 }), share, share, (times, a, b) => {
      const sketch = filled(times);
      assert.ok(sketch.at(Math.min(a, b)) <= sketch.at(Math.max(a, b)));
      assert.equal(filled([...times].reverse()).at(a), sketch.at(a));
    }),
    runs,
  );
});

test('the last times count, and no more than as many before them', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 3 * WINDOW }), time, time, (many, before, after) => {
      const sketch = filled(Array(many).fill(before));
      for (let i = 0; i < 2 * WINDOW; i++) sketch.add(after);
      assert.ok(sketch.size > WINDOW && sketch.size <= 2 * WINDOW);
      const only = filled([after]);
      for (const q of [0, 0.5, 1]) assert.equal(sketch.at(q), only.at(q));
    }),
    { ...runs, numRuns: 50 },
  );
});

test('nothing seen, nothing told', () => {
  assert.equal(new Quantiles().at(0.95), 0);
  assert.equal(new Quantiles().size, 0);
});
