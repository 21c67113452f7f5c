/**
 * The short form of `npm run soak`: a cluster, source NAT and a path that falls silent, with flows of sizes around the threshold,
 * by RepFlow and RepSYN; none is lost. And every mode through a relay that breaks connections, with ends of either version of the wire
 * format.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { skipNft } from './lib/nft.mjs';
import { FABRICS } from './soak/fabrics.mjs';
import { soak, throughRelay } from './soak/soak.mjs';

const skip = skipNft();

for (const fabric of Object.keys(FABRICS))
  test(`${fabric}: 300 flows, none lost`, { skip }, async () => {
    const { flows, lost, wrong, flowsFlow, copiesFailed } = await soak(fabric, 300);
    assert.deepEqual([flows, lost, wrong], [300, 0, []]);
    // The test meets what it is about.
    assert.ok(flowsFlow > 200 && copiesFailed > 20, `${flowsFlow} flows, ${copiesFailed} failures`);
  });

const FLOWS = 6_000 / Number(process.env.REPNET_FAULT_SHARE ?? 1);

test(`${FLOWS} flows through a relay that breaks them, in every mode: none lost, doubled or mixed`, async () => {
  const { flows, rooms, wrong } = await throughRelay(
    process.execPath,
    FLOWS,
    Number.POSITIVE_INFINITY,
    20261122,
  );
  assert.deepEqual([flows, wrong], [FLOWS, []]);
  for (const { mode, peer, complete, failed } of rooms)
    assert.ok(complete > 0 && failed > 0, `${mode}, ${peer}: ${complete} complete, ${failed} failed`);
});
