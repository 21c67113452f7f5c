/** Command lines that a program refuses, all tried in one process. */
import assert from 'node:assert/strict';
import { resolve } from 'node:path';
import { root, runNode } from './process.mjs';

/** What the program `main` ends with and says: { code, stderr } for each of these command lines, which it refuses. */
export async function refusals(main, lines) {
  const args = [resolve(root, main), JSON.stringify(lines)];
  const { code, stdout, stderr } = await runNode('test/apps/support/refusals-child.cjs', args);
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout);
}
