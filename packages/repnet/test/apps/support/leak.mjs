/** Flows in a process of their own, so that nothing but the flows moves its memory. */
import assert from 'node:assert/strict';
import { runNode } from './process.mjs';

/** Fails if memory or handles grow with the number of flows. */
export async function assertNoLeak(t, replicate, flows) {
  const { code, stdout, stderr } = await runNode(
    'test/apps/support/leak-child.mjs',
    [replicate, String(flows)],
    {
      env: { ...process.env, NODE_OPTIONS: '--expose-gc' },
    },
  );
  assert.equal(code, 0, stderr);
  const { samples, handlesBefore, handlesAfter, done } = JSON.parse(stdout);
  const mebibytes = (name) => samples.map((sample) => (sample[name] / 2 ** 20).toFixed(2)).join(' ');
  t.diagnostic(`heap after each tenth, MiB: ${mebibytes('heapUsed')}`);
  t.diagnostic(`external after each tenth, MiB: ${mebibytes('external')}`);
  assert.equal(done, flows);
  assert.equal(handlesAfter, handlesBefore);
  // What the library remembers on purpose (pairs, peers) is bounded and full after the first half.
  // Receive buffers come and go in slabs; what stays is the least of three samples in a row.
  const least = (from, name) => Math.min(...samples.slice(from, from + 3).map((sample) => sample[name]));
  const perFlow = (name) => (least(7, name) - least(3, name)) / (flows * 0.4);
  assert.ok(perFlow('heapUsed') < 20, `${perFlow('heapUsed')} bytes of heap stay per flow`);
  assert.ok(perFlow('external') < 20, `${perFlow('external')} bytes outside the heap stay per flow`);
}
