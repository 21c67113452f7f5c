import { test } from 'node:test';
import { assertNoLeak } from '../apps/support/leak.mjs';

test('40_000 flows with replicate false leave memory and handles where they were', (t) =>
  assertNoLeak(t, 'false', 40_000));
