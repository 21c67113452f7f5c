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
  t.diagnostic(`heap after each fifth, MiB: ${mebibytes('heapUsed')}`);
  t.diagnostic(`external after each fifth, MiB: ${mebibytes('external')}`);
  assert.equal(done, flows);
  assert.equal(handlesAfter, handlesBefore);
  // After the first fifth all code is compiled and what is remembered on purpose (peers) is there.
  const perFlow = (name) => (samples.at(-1)[name] - samples[0][name]) / (flows * 0.8);
  assert.ok(perFlow('heapUsed') < 20, `${perFlow('heapUsed')} bytes of heap stay per flow`);
  assert.ok(perFlow('external') < 20, `${perFlow('external')} bytes outside the heap stay per flow`);
}
