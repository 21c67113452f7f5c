import { test } from 'node:test';
import { assertNoLeak } from './support/leak.mjs';

test('60_000 flows with replicate flow leave memory and handles where they were', (t) =>
  assertNoLeak(t, 'flow', 60_000));
