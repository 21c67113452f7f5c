import { test } from 'node:test';
import { assertNoLeak } from '../apps/support/leak.mjs';

test('100_000 flows with replicate flow leave memory and handles where they were', (t) =>
  assertNoLeak(t, 'flow', 100_000));
