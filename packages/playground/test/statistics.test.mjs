import assert from 'node:assert/strict';
import { test } from 'node:test';
import { duration, histogram, percentile, totals, verdict } from '../dist/statistics.js';

test('percentiles use the nearest rank', () => {
  const hundred = Float64Array.from({ length: 100 }, (_, at) => at + 1);
  assert.equal(percentile(hundred, 0.5), 50);
  assert.equal(percentile(hundred, 0.99), 99);
  assert.equal(percentile(hundred, 1), 100);
  assert.equal(percentile([7], 0.01), 7);
  assert.equal(percentile([], 0.5), undefined);
});

test('bins have equal width on a logarithmic axis and count values outside', () => {
  const bins = histogram([0.5, 1, 5, 50, 500, 5000], 1, 1000, 3);
  assert.deepEqual(bins.counts, [3, 1, 2]);
});

test('times are formatted in a readable unit', () => {
  assert.equal(duration(250_000), '0.25\u00a0ms');
  assert.equal(duration(99_000), '99.0\u00a0µs');
  assert.equal(duration(12_345_678), '12.3\u00a0ms');
  assert.equal(duration(1.5e9), '1.50\u00a0s');
  assert.equal(duration(Number.POSITIVE_INFINITY), 'not finished');
});

test('totals list the special counters that are not zero', () => {
  const counters = { events: 9, sent: 1000, dropped: 1200, lost_on_links: 0, pauses: 3, deadlocked_links: 1 };
  assert.equal(totals('PFC', counters), 'PFC: dropped 1,200, pauses 3, deadlocked links 1.');
  assert.equal(totals('TCP', { events: 9, sent: 1000, dropped: 0 }), '');
});

test('the verdict compares the tails of two schemes', () => {
  const flows = (tail) => [...new Array(98).fill(1e6), tail, tail];
  const of = (first, second) =>
    verdict({ name: 'A', sorted: flows(first) }, { name: 'B', sorted: flows(second) }).replaceAll(
      '\u00a0',
      ' ',
    );
  assert.equal(
    of(10e6, 5e6),
    'Under A, half of the flows take less than 1.00 ms. But one in a hundred takes 10.0 ms or more, 10 times as long: ' +
      'that is the tail. Under B, one in a hundred takes 5.00 ms or more, 50 % less.',
  );
  assert.match(of(1.2e6, 12e6), /there is hardly a tail\. Under B, .* 12\.0 ms or more, 10 times as long\.$/);
  assert.match(of(10e6, 11e6), /10 % more\.$/);
  assert.match(of(10e6, 10e6), /about the same\.$/);
  const never = Number.POSITIVE_INFINITY;
  assert.match(of(never, 10e6), /one in a hundred does not finish at all: .* takes 10\.0 ms or more\.$/);
  assert.match(of(10e6, never), /Under B, one in a hundred does not finish\.$/);
  assert.equal(verdict({ name: 'A', sorted: [] }, undefined), 'No flow of this size has finished.');
});

test('the verdict says that most flows do not finish', () => {
  const stuck = { name: 'B', sorted: [1e6, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY] };
  const fine = { name: 'A', sorted: [1e6, 1e6, 2e6] };
  const lost = 'Under B, more than half of the flows do not finish.';
  assert.equal(verdict(stuck, undefined), lost);
  assert.equal(verdict(stuck, fine), `${lost} Under A, one in a hundred takes 2.00\u00a0ms or more.`);
  assert.match(verdict(fine, stuck), /Under B, more than half do not finish\.$/);
});
