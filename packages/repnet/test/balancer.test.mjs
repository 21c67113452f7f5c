/**
 * A balancer (nftables, DNAT) in front of three backends that are restarted under load, one after the other: what net completes, every
 * mode completes, and each flow is had by one backend; also while servers are upgraded from a build of version 1. In full:
 * long/balancer.test.mjs.
 */
import { test } from 'node:test';
import { assertNoneLost } from './lib/balanced.mjs';
import { skipNft } from './lib/nft.mjs';

const skip = skipNft();
const FLOWS = 160;

for (const [mode, balances] of [
  ['RepFlow', 'random'],
  ['RepFlow', 'source'],
  ['RepFlow hedged', 'random'],
  ['RepSYN', 'random'],
  ['RepFlow, server first', 'source'],
])
  test(`${mode}, balanced at ${balances}: nothing is lost in a rolling restart`, { skip }, () =>
    assertNoneLost(mode, balances, FLOWS),
  );
