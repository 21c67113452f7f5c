/**
 * What `npm run bench:fabric` makes of its measurements, and that the README has nothing else. It
 * is not run here: it wants the machine to itself.
 */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { sizes } from '../bench/fabric/draw.mjs';
import { inReadme, ofReadme, quantile, README, render, rows } from '../bench/fabric/table.mjs';

const readme = readFileSync(new URL('../../repnet/README.md', import.meta.url), 'utf8');
const measured = new URL('../bench/fabric/results.json', import.meta.url);

test('sizes are from 1 KB to 100 KB, half of them below 10 KB, and the same again', () => {
  const drawn = sizes(3).next(4000);
  assert.ok(drawn.every((bytes) => bytes >= 1000 && bytes <= 100_000));
  const small = drawn.filter((bytes) => bytes < 10_000).length / drawn.length;
  assert.ok(Math.abs(small - 0.5) < 0.04, `${small}`);
  assert.deepEqual(sizes(3).next(4000), drawn);
  assert.notDeepEqual(sizes(4).next(4000), drawn);
});

test('a quantile is that of the nearest rank, where at least three lie beyond it', () => {
  const times = Float64Array.from({ length: 1000 }, (_, n) => n + 1);
  assert.equal(quantile(times, 0.5), 500);
  assert.equal(quantile(times, 0.99), 990);
  assert.equal(quantile(times, 0.999), null);
  assert.equal(quantile(times.subarray(0, 299), 0.99), null);
  assert.equal(quantile(times.subarray(0, 300), 0.99), 297);
});

const times = (slower) => Array.from({ length: 400 }, (_, n) => slower * (400 - n));
const results = {
  date: '2026-01-02',
  node: '20.0.0',
  kernel: '6.18.0',
  seconds: 9,
  workers: 2,
  services: [
    { name: 'One', measured: rows({ net: times(1), RepSYN: times(0.25) }), failed: 1, unfaithful: [] },
    { name: 'Two', skipped: 'it is not there' },
  ],
};

test('the table compares each way with the plain one, and says what was not measured', () => {
  const lines = render(results).split('\n');
  assert.deepEqual(lines.slice(2, 5), [
    '| One | net | 400 | 200 | 396 |  | – |  |',
    '| One | RepSYN | 400 | 50.0 | 99.0 | −75 % | – | – |',
    '| Two | not measured: it is not there | | | | | | |',
  ]);
  assert.match(
    lines.at(-1),
    /Node 20.0.0 on Linux 6.18.0, for 9 s each, 2 requests at a time; 1 sessions failed/,
  );
  const late = { ...results, services: [{ ...results.services[0], unfaithful: ['it was late'] }] };
  assert.match(render(late), /\*\*Not faithful\*\*: One: it was late/);
});

test('the table goes between its marks, and again', () => {
  const once = inReadme(readme, render(results));
  assert.equal(ofReadme(once), render(results));
  assert.equal(inReadme(inReadme(once, 'other'), ofReadme(readme)), readme);
  assert.throws(() => inReadme('no marks', 'text'), /no place/);
});

test('the README has what was measured last, and nothing by hand', () => {
  const expected = existsSync(measured)
    ? `${README}\n\n${render(JSON.parse(readFileSync(measured, 'utf8')))}`
    : '';
  assert.equal(ofReadme(readme), expected);
});
