/** Quantities as command lines have them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseBytes, parseDelay, parseDuration, parseTimeout } from 'repnet-cli/units';
import { parseThreshold } from '../dist/dial.js';

for (const [text, bytes] of [
  ['64.1KB', 64_100],
  ['1.1GB', 1_100_000_000],
  ['0.5KiB', 512],
  ['0B', 0],
]) {
  test(`a size of ${text} is ${bytes} bytes`, () => assert.equal(parseBytes(text, '--bytes'), bytes));
}

test('a size of a part of a byte is refused', () => {
  for (const text of ['0.5B', '1.0001KB', '99999.99999KB'])
    assert.throws(() => parseBytes(text, '--bytes'), { code: 'ERR_QUANTITY', message: /not a whole number/ });
});

test('a duration is what its digits say', () => assert.equal(parseDuration('4.35ms', '--timeout'), 4_350));

test('a time that is longer than timers go is refused', () => {
  assert.equal(parseDelay('2147483647ms', '--x'), 2_147_483_647);
  assert.throws(() => parseDelay('2147483648ms', '--x'), {
    code: 'ERR_QUANTITY',
    message: /^--x: .*24 days/,
  });
});

test('a timeout of 0 is refused', () => {
  assert.equal(parseTimeout('1ms', '--x'), 1);
  assert.throws(() => parseTimeout('0s', '--x'), { code: 'ERR_QUANTITY', message: /^--x: .*more than 0/ });
});

test('a threshold is no longer than a hello can say, the header of a flow included', () => {
  assert.equal(parseThreshold('4294967263B', '--threshold'), 4_294_967_263);
  for (const text of ['4294967264B', '4294967295B', '4GiB'])
    assert.throws(() => parseThreshold(text, '--threshold'), { code: 'ERR_QUANTITY', message: /4294967263/ });
});
