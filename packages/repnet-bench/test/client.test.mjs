/** The client of the traffic generator without its command. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BenchClient } from '../dist/client.js';

for (const precise of [false, true])
  test(`a ${precise ? 'precise ' : ''}client that is stopped while it waits for the next flow does not send it`, async () => {
    const seen = [];
    const client = new BenchClient({
      dialer: { mode: 'net', replicates: () => false, dial: () => seen.push('dialled') },
      direction: 'up',
      keepAlive: false,
      timeout: 1_000,
      maxInFlight: 1,
      precise,
      onRow: () => seen.push('row'),
    });
    const stop = new AbortController();
    const week_ns = 7 * 86_400e9;
    const run = client.openLoop([[{ id: 0, group: 0, key: 0, bytes: 1, to: 0, at: week_ns }]], stop.signal);
    stop.abort();
    await run;
    assert.deepEqual(seen, []);
  });
