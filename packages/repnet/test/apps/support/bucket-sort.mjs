/** The bucket sort example, run as a user runs it. */
import assert from 'node:assert/strict';
import { runNode } from './process.mjs';

/** Sort so many numbers on so many slaves; fails unless the result is sorted and nothing was complained of. */
export async function bucketSort(replicate, numbers, slaves = 11) {
  const args = ['--replicate', replicate, '--numbers', String(numbers), '--slaves', String(slaves)];
  const { code, stdout, stderr } = await runNode('examples/bucket-sort/run.js', args);
  assert.equal(code, 0, stderr);
  assert.equal(stderr, '');
  const [, mice] = /^\w+ +(\d+) mice .* sorted$/m.exec(stdout) ?? assert.fail(stdout);
  return { stdout, mice: Number(mice) };
}
