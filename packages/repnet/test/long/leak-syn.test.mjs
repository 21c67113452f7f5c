import { test } from 'node:test';
import { assertNoLeak } from '../apps/support/leak.mjs';

test('30_000 flows with replicate syn leave memory and handles where they were', (t) =>
  assertNoLeak(t, 'syn', 30_000));
