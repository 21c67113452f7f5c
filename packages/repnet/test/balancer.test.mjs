/**
 * A balancer (nftables, DNAT) in front of three backends that are restarted under load, one after the other: what net completes, every
 * mode completes, and each flow is had by one backend; also while servers are upgraded from a build of version 1.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { run } from './apps/support/process.mjs';
import { MODES } from './balancer/modes.mjs';
import { skipNft } from './lib/nft.mjs';

const skip = skipNft();
const FLOWS = 400;

for (const mode of Object.keys(MODES))
  for (const balances of ['random', 'source'])
    test(`${mode}, balanced at ${balances}: nothing is lost in a rolling restart`, { skip }, async () => {
      const args = ['--net', process.execPath, 'test/balancer/child.mjs', mode, balances, String(FLOWS)];
      const { code, stdout, stderr } = await run('unshare', args);
      assert.equal(code, 0, stderr);
      const { flows, lost, wrong, flowsFlow, flowsSyn, paired, earlierPeers } = JSON.parse(stdout);
      assert.deepEqual([lost, wrong], [0, []]);
      assert.ok(flows >= FLOWS);
      if (mode === 'net') return;
      // The test meets what it is about.
      assert.equal(flowsFlow + flowsSyn, flows);
      // Hedged, there may be no copies, and at random few of them meet: that depends on how fast the machine is.
      if (flowsFlow === 0 || MODES[mode].copyDelay !== undefined || balances === 'random') return;
      assert.ok(paired > 0, 'the copies of flows meet');
      if (mode.includes('server first')) assert.ok(earlierPeers > 0);
    });
