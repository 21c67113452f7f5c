/** Two sockets joined, without a process. */
import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { relay } from '../dist/relay.js';

const DAY = 86_400_000;

for (const [connectTimeout, expected] of [
  [0, false],
  [DAY, true],
]) {
  test(`--connect-timeout ${connectTimeout} ms: ${expected ? 'given up' : 'still waited for'} after a day`, (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const [near, far] = [new PassThrough(), new PassThrough()];
    relay(near, far, { connectTimeout, idleTimeout: 0 }, () => {});
    t.mock.timers.tick(DAY);
    assert.deepEqual([near.destroyed, far.destroyed], [expected, expected]);
  });
}
