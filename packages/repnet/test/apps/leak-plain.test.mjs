import { test } from 'node:test';
import { assertNoLeak } from './support/leak.mjs';

test('10_000 flows with replicate false leave memory and handles where they were', (t) =>
  assertNoLeak(t, 'false', 10_000));
