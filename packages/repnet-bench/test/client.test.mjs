/** The client of the traffic generator without its command. */
import assert from 'node:assert/strict';
import net from 'node:net';
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

test('maxInFlight does not bound the workers of a closed loop', async () => {
  const seen = [];
  const client = new BenchClient({
    dialer: { mode: 'net', replicates: () => false, dial: () => new net.Socket().destroy(new Error('no')) },
    direction: 'up',
    keepAlive: false,
    timeout: 1_000,
    maxInFlight: 1,
    precise: false,
    onRow: ({ flow, status }) => seen.push([flow, status === 'ERR_BENCH_OVERLOAD']),
  });
  const worker = (id) => [[{ id, group: id, key: id, bytes: 1, to: 0 }]];
  await client.closedLoop([worker(0), worker(1), worker(2)], new AbortController().signal);
  assert.deepEqual(seen.sort(), [
    [0, false],
    [1, false],
    [2, false],
  ]);
});
