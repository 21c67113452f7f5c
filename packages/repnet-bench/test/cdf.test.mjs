import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { fixedSize, parseCdf } from '../dist/cdf.js';

const WEB_SEARCH =
  '8760 0\n8760 0.15\n18980 0.2\n27740 0.3\n48180 0.4\n77380 0.53\n194180 0.6\n973820 0.7\n1946180 0.8\n4866180 0.9\n9733820 0.97\n29200000 1\n';

test('the mean of the web-search table is that of the piecewise-linear distribution', () => {
  assert.equal(Math.round(parseCdf(WEB_SEARCH, 'w').mean), 1_665_831);
});

test('a repeated size is an atom and the distribution is linear between points', () => {
  const sizes = parseCdf(WEB_SEARCH, 'w');
  assert.equal(sizes.sample(0), 8760);
  assert.equal(sizes.sample(0.1499), 8760);
  assert.equal(sizes.sample(0.175), (8760 + 18980) / 2);
  assert.ok(sizes.sample(1 - 2 ** -53) <= 29_200_000);
});

test('the first point holds its own probability', () => {
  const sizes = parseCdf('100 0.5\n300 1', 'a');
  assert.equal(sizes.sample(0.49), 100);
  assert.equal(sizes.sample(0.75), 200);
  assert.equal(sizes.mean, 150);
});

test('sizes in packets and KB are multiplied by their unit', () => {
  assert.equal(parseCdf('1 0\n1 1', 'p', 1460).sample(0.5), 1460);
  assert.equal(parseCdf('# KB\n6 0.0\n6 1\n', 'k', 1000).mean, 6000);
});

test('a flow has at least one byte', () => {
  assert.equal(parseCdf('0 0\n10 1', 'z').sample(0), 1);
});

test('sampled sizes have the distribution of the table', () => {
  fc.assert(
    fc.property(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), (u) => {
      const sizes = parseCdf(WEB_SEARCH, 'w');
      const bytes = sizes.sample(u);
      const above = sizes.points.findIndex((point) => point.probability > u);
      assert.ok(bytes <= sizes.points[above].bytes && bytes >= (sizes.points[above - 1]?.bytes ?? bytes));
    }),
  );
});

for (const [what, text, message] of [
  ['an empty file', '', /no points/],
  ['a line that is not two numbers', '10 0.5\nx 1', /f:2: 'x 1'/],
  ['a probability that falls', '1 0.5\n2 0.4', /f:2: both columns/],
  ['a size that falls', '5 0.5\n4 1', /f:2: both columns/],
  ['a probability over 1', '5 1.5', /between 0 and 1/],
  ['a table that does not end at 1', '5 0.9', /must end at 1/],
]) {
  test(`${what} is refused with its place`, () => {
    assert.throws(() => parseCdf(text, 'f'), { code: 'ERR_CDF', message });
  });
}

test('a fixed size is always that size', () => {
  assert.equal(fixedSize(1000).sample(0.999), 1000);
  assert.equal(fixedSize(1000).mean, 1000);
});
