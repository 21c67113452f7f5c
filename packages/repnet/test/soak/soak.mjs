/** Runs the flows of one fabric in a network namespace of its own; what became of them. */
import { run } from '../apps/support/process.mjs';

export async function soak(fabric, flows, library = 'repnet') {
  const args = ['--net', process.execPath, 'test/soak/child.mjs', fabric, library, String(flows)];
  const { code, stdout, stderr } = await run('unshare', args);
  if (code !== 0) throw new Error(`${fabric}: ${stderr}`);
  return JSON.parse(stdout);
}
