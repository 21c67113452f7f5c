import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bucketSort } from '../apps/support/bucket-sort.mjs';

test('the bucket sort at the size of the paper: a million numbers, about 50,000 mice, by RepSYN', async (t) => {
  const { stdout, mice } = await bucketSort('syn', 1_000_000);
  t.diagnostic(stdout.trim());
  assert.ok(mice >= 50_000 && mice <= 50_011);
});
