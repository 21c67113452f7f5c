/** Flows through a balancer while its backends are restarted, in a network namespace of their own: ../balancer/child.mjs. */
import assert from 'node:assert/strict';
import { run } from '../apps/support/process.mjs';
import { MODES } from '../balancer/modes.mjs';

/** Fails if a flow is lost of so many by a mode, where the balancer chooses a backend at `balances` (random, source). */
export async function assertNoneLost(mode, balances, count) {
  const args = ['--net', process.execPath, 'test/balancer/child.mjs', mode, balances, String(count)];
  const { code, stdout, stderr } = await run('unshare', args);
  assert.equal(code, 0, stderr);
  const { flows, lost, wrong, flowsFlow, flowsSyn, paired, earlierPeers } = JSON.parse(stdout);
  assert.deepEqual([lost, wrong], [0, []]);
  assert.ok(flows >= count);
  if (mode === 'net') return;
  // The test meets what it is about.
  assert.equal(flowsFlow + flowsSyn, flows);
  // Hedged, there may be no copies, and at random few of them meet: that depends on how fast the machine is.
  if (flowsFlow === 0 || MODES[mode].copyDelay !== undefined || balances === 'random') return;
  assert.ok(paired > 0, 'the copies of flows meet');
  if (mode.includes('server first')) assert.ok(earlierPeers > 0);
}
