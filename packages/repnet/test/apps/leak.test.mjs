import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runNode } from './support/process.mjs';

// A process of its own, so that nothing but the flows moves its memory: see support/leak-child.mjs.
for (const [replicate, flows] of [
  ['flow', 60_000],
  ['syn', 30_000],
  ['false', 10_000],
]) {
  test(`${flows} flows with replicate ${replicate} leave memory and handles where they were`, {
    timeout: 280_000,
  }, async (t) => {
    const { code, stdout, stderr } = await runNode(
      'test/apps/support/leak-child.mjs',
      [replicate, String(flows)],
      {
        env: { ...process.env, NODE_OPTIONS: '--expose-gc' },
      },
    );
    assert.equal(code, 0, stderr);
    const { samples, handlesBefore, handlesAfter, done } = JSON.parse(stdout);
    t.diagnostic(
      `heap after each tenth, MiB: ${samples.map(({ heapUsed }) => (heapUsed / 2 ** 20).toFixed(2)).join(' ')}`,
    );
    t.diagnostic(
      `external after each tenth, MiB: ${samples.map(({ external }) => (external / 2 ** 20).toFixed(2)).join(' ')}`,
    );
    assert.equal(done, flows);
    assert.equal(handlesAfter, handlesBefore);
    // What the library remembers on purpose (pairs, peers) is bounded and full after the first half.
    const [middle, last] = [samples[4], samples[9]];
    const perFlow = (name) => (last[name] - middle[name]) / (flows / 2);
    assert.ok(perFlow('heapUsed') < 20, `${perFlow('heapUsed')} bytes of heap stay per flow`);
    assert.ok(perFlow('external') < 20, `${perFlow('external')} bytes outside the heap stay per flow`);
  });
}
