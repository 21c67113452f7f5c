/** The long form of ../balancer.test.mjs: every mode, net among them, by every way in which the balancer chooses. */
import { test } from 'node:test';
import { MODES } from '../balancer/modes.mjs';
import { assertNoneLost } from '../lib/balanced.mjs';
import { skipNft } from '../lib/nft.mjs';

const skip = skipNft();
const FLOWS = 400;

for (const mode of Object.keys(MODES))
  for (const balances of ['random', 'source'])
    test(`${mode}, balanced at ${balances}: nothing is lost in a rolling restart`, { skip }, () =>
      assertNoneLost(mode, balances, FLOWS),
    );
