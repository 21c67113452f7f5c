/**
 * The short form of `npm run soak`: a cluster, source NAT and a path that falls silent, with flows of sizes around the threshold,
 * by RepFlow and RepSYN; none is lost.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { skipNft } from './lib/nft.mjs';
import { FABRICS } from './soak/fabrics.mjs';
import { soak } from './soak/soak.mjs';

const skip = skipNft();

for (const fabric of Object.keys(FABRICS))
  test(`${fabric}: 300 flows, none lost`, { skip }, async () => {
    const { flows, lost, wrong, flowsFlow, copiesFailed } = await soak(fabric, 300);
    assert.deepEqual([flows, lost, wrong], [300, 0, []]);
    // The test meets what it is about.
    assert.ok(flowsFlow > 200 && copiesFailed > 20, `${flowsFlow} flows, ${copiesFailed} failures`);
  });
