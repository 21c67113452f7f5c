/**
 * Fault injection: whatever happens to either copy, each byte arrives once, in order, with one 'connection', one 'end' or
 * one 'error', one 'close'. The random flows are the same in each run: REPNET_FAULT_SEED draws others ('new': each time), and
 * REPNET_FAULT_RUNS sets how many there are. `npm run soak` draws anew.
 */
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { after, before, test } from 'node:test';
import fc from 'fast-check';
import { grownUp, startFaultBench } from './lib/fault-bench.mjs';
import { acceptBoth, KINDS, PAIR_TIMEOUT, POSITIONS, scenario, whole } from './lib/fault-judge.mjs';

const SMALL = { requestLength: 1_000, replyLength: 2_000 };
const HALF = { ...SMALL, half: true };
const LARGE = { requestLength: 30_000, replyLength: 90_000 };

let bench;
before(async () => {
  bench = await startFaultBench({ pairTimeout: PAIR_TIMEOUT });
  await grownUp(bench, SMALL);
});
after(() => bench.close());

/** Of several versions of Node run.mjs wants every so many-th flow of each, on each version others. */
const SHARE = Number(process.env.REPNET_FAULT_SHARE ?? 1);
const MAJOR = Number.parseInt(process.versions.node, 10);

/** Runs flows; those that are not as `accept` wants are described. */
/** `accept.mayHang(faults)`: nothing need come of it, and for how long it is looked at. Of others a hang is a fault, and told late. */
async function judge(all, accept, { stalled = 1_200 } = {}, again = '') {
  const cases = all.filter((_, n) => (n + MAJOR / 2) % SHARE < 1);
  const bad = [];
  const tally = { complete: 0, failed: 0, hung: 0 };
  await bench.all(
    cases.map(({ faults, shape }) => async () => {
      const timeout = accept.mayHang?.(faults) ? stalled : undefined;
      const outcome = await bench.flow(faults, shape, { timeout });
      if (outcome.complete) tally.complete++;
      else if (outcome.hung) tally.hung++;
      else tally.failed++;
      const complaint = accept(outcome, faults);
      if (complaint) bad.push(`${complaint}: ${outcome.describe()}`);
    }),
  );
  console.log(`# ${JSON.stringify(tally)}`);
  const said = bad.slice(0, 3).map((flow) => `\n${flow}`);
  assert.ok(bad.length === 0, `${bad.length} of ${cases.length} flows ${again}${said.join('')}`);
  return tally;
}

const single = [];
for (const shape of [SMALL, HALF, LARGE])
  for (const copy of [0, 1])
    for (const direction of ['up', 'down'])
      for (const kind of KINDS)
        for (const at of shape === LARGE ? [...POSITIONS, 20_000, 29_000, 60_000, 89_000] : POSITIONS)
          single.push({ faults: [{ copy, direction, kind, at }], shape });

test('one fault on one copy, anywhere: the flow completes', async () => {
  await judge(single, (outcome) => outcome.wrong ?? (outcome.complete ? undefined : 'not complete'));
});

test('a fault on each copy, all kinds and directions: complete or one error, never lost, doubled or mixed', async () => {
  const cases = [];
  for (const shape of [SMALL, HALF])
    for (const direction of ['up', 'down'])
      for (const other of ['up', 'down'])
        for (const kind of KINDS)
          for (const otherKind of KINDS)
            for (const at of [0, 24, 90, 600, 1_050])
              for (const otherAt of [0, 50, 77, 600, 1_100])
                cases.push({
                  faults: [
                    { copy: 0, direction, kind, at },
                    { copy: 1, direction: other, kind: otherKind, at: otherAt },
                  ],
                  shape,
                });
  await judge(cases, acceptBoth);
});

test('the order of the two copies: either may come first, by any delay', async () => {
  const cases = [];
  for (const copy of [0, 1])
    for (const ms of [1, 5, 20, 60, 150, 250, 450])
      for (const direction of ['up', 'down'])
        for (const shape of [SMALL, HALF, LARGE])
          for (let n = 0; n < 4; n++)
            cases.push({ faults: [{ copy, direction, kind: 'pause', at: 0, ms }], shape });
  await judge(cases, (outcome) => outcome.wrong ?? (outcome.complete ? undefined : 'not complete'));
});

const mustComplete = (outcome) => outcome.wrong ?? (outcome.complete ? undefined : 'not complete');

for (const copy of [0, 1])
  test(`a ${copy === 0 ? 'first' : 'second'} connection that the server never sees`, async () => {
    const cases = [SMALL, HALF, LARGE].flatMap((shape) =>
      Array.from({ length: 20 }, () => ({
        faults: [{ copy, direction: 'up', kind: 'nosyn', at: 0 }],
        shape,
      })),
    );
    await judge(cases, mustComplete);
  });

test('the first copy stalls under the reply, and the second comes when the server has closed', async () => {
  const cases = [1, 2_000, 31_133, 79_000].flatMap((at) =>
    [90, 120, 250].map((ms) => ({
      faults: [
        { copy: 0, direction: 'down', kind: 'stall', at },
        { copy: 1, direction: 'up', kind: 'pause', at: 33, ms },
      ],
      shape: { requestLength: 44_868, replyLength: 79_245, half: true },
    })),
  );
  await judge(cases, (outcome) => outcome.wrong ?? (outcome.complete ? undefined : 'not complete'));
});

const RUNS = Number(process.env.REPNET_FAULT_RUNS ?? 4_000);
const { REPNET_FAULT_SEED = '20261122' } = process.env;
const SEED = REPNET_FAULT_SEED === 'new' ? randomInt(2 ** 31) : Number(REPNET_FAULT_SEED);

test('random faults', async () => {
  console.log(`# REPNET_FAULT_SEED=${SEED}`);
  await judge(
    fc.sample(scenario, { seed: SEED, numRuns: RUNS }),
    whole(acceptBoth),
    { stalled: 4_000 },
    `REPNET_FAULT_SEED=${SEED} REPNET_FAULT_RUNS=${RUNS}`,
  );
});

// Else REPNET_FAULT_RUNS says how many.
if (process.env.REPNET_FAULT_RUNS === undefined)
  test('at least 9,000 flows were judged, or their share', () => {
    console.log(`# ${bench.judged} flows judged`);
    assert.ok(bench.judged >= 9_000 / SHARE, `${bench.judged}`);
  });
