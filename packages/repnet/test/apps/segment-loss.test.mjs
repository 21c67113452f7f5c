/**
 * Real loss, by nftables in a network namespace: SYNs, SYN-ACKs, each early segment, FIN and RST of either connection in
 * either direction, of both, and everything from some packet on. Each byte arrives once, in order, with one 'connection',
 * one 'end' and one 'close' on each side.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { skipNft } from '../lib/nft.mjs';
import { run } from './support/process.mjs';
import { CASES } from './support/segment-loss-cases.mjs';

const CHILD = 'test/apps/support/segment-loss-child.mjs';

const skip = skipNft();

const HANDSHAKE = ['syn', 'synack'];
const milliseconds = (times) => {
  const sorted = times.toSorted((a, b) => a - b);
  return `median ${sorted[sorted.length >> 1].toFixed(0)} ms, longest ${sorted.at(-1).toFixed(0)} ms`;
};

const runs = new Map();
/** What became of a case's flows, which are sent once, in a network namespace of their own. */
function outcomesOf(name) {
  const sent = async () => {
    const { code, stdout, stderr } = await run('unshare', ['--net', process.execPath, CHILD, name]);
    assert.equal(code, 0, stderr);
    return JSON.parse(stdout);
  };
  if (!runs.has(name)) runs.set(name, sent());
  return runs.get(name);
}

// They wait for the kernel to send again, most of the time.
describe('lost packets', { concurrency: 3 }, () => {
  for (const [name, { flows }] of Object.entries(CASES))
    test(`lost packets, ${name}: ${flows.length} flows, none lost, doubled or hung`, {
      skip,
    }, async (t) => {
      const outcomes = await outcomesOf(name);
      assert.equal(outcomes.length, flows.length);
      const bad = outcomes.flatMap((outcome, i) => (outcome.wrong ? [{ ...flows[i], ...outcome }] : []));
      assert.deepEqual(bad.slice(0, 3), [], `${bad.length} flows`);

      // The test meets what it is about.
      const struck = outcomes.filter(({ dropped }) => dropped > 0).length;
      t.diagnostic(
        `${struck} flows lost packets, ${outcomes.reduce((sum, { dropped }) => sum + dropped, 0)} in all`,
      );
      assert.ok(struck > flows.length / 2);
      for (const [i, { faults }] of flows.entries())
        if (faults.every(({ packets }) => HANDSHAKE.includes(packets)))
          assert.ok(outcomes[i].dropped > 0, JSON.stringify(faults));
      const firstSyn = outcomes.filter((_, i) => {
        const [{ packets, port, to }] = flows[i].faults;
        return (
          flows[i].faults.length === 1 && packets === 'syn' && port === flows[0].faults[0].port && to === 1
        );
      });
      t.diagnostic(
        `with the first connection's first SYN lost: ${milliseconds(firstSyn.map(({ took }) => took))}`,
      );
    });

  test('the loser of two handshakes ends by FIN, or is reset where that is asked for', { skip }, async () => {
    const name = 'syn to an unmodified server';
    const resets = { rst: [], fin: [] };
    for (const [i, { dropped }] of (await outcomesOf(name)).entries()) {
      const { faults, connect } = CASES[name].flows[i];
      if (faults[0].packets === 'rst' && faults[0].direction === 'up')
        resets[connect.loser ?? 'fin'].push(dropped);
    }
    assert.deepEqual(resets, { rst: [1, 1], fin: [0, 0] });
  });
});
