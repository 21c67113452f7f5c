/**
 * Names of several addresses, of which some answer, refuse, swallow packets or reset, beside the clients
 * that are installed: repnet is never later than the best of them by more than one attempt delay.
 */
import { describe, test } from 'node:test';
import { skipNft } from './lib/nft.mjs';
import { assertNeverLate, measure } from './race/matrix.mjs';
import { FEW } from './race/rows.mjs';

const skip = skipNft();
let measured;

describe('Happy Eyeballs', { skip }, () => {
  for (const row of FEW)
    test(`${row}: no later than the best other client and one attempt delay`, { skip }, async () => {
      measured ??= measure(FEW);
      assertNeverLate((await measured).find((result) => result.row === row));
    });
});
