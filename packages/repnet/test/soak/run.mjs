/**
 * npm run soak -- [--flows 1000000] [--minutes 30] [--fabric-flows N] [--fabric cluster|nat|silent] [--library net|repnet] [--mode MODE]:
 * so many flows in all, or for so long. So many of them go through each network namespace (fabrics.mjs), whatever time that takes; if it
 * is not said, one flow in thirty goes through one of them. The others go through a relay that breaks
 * connections (relay.mjs) on each version of Node that is pinned, two at a time; half of them beside busy loops. One mode alone, as
 * docs/soak.md names it, goes through the relay only. The seed is printed, and REPNET_FAULT_SEED repeats it. A run of at least that size writes docs/soak.md. Fails if a flow is lost, doubled, mixed, or hangs where net would not, or if memory grows.
 */
import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { skipNft } from '../lib/nft.mjs';
import { installPinnedVersions, pinnedVersions } from '../lib/node-versions.mjs';
import { FABRICS } from './fabrics.mjs';
import { reportOf } from './report.mjs';
import { growth, soak, throughRelay } from './soak.mjs';

const FULL = { flows: 1_000_000, minutes: 30 };

const { values } = parseArgs({
  options: {
    flows: { type: 'string', default: String(FULL.flows) },
    minutes: { type: 'string', default: String(FULL.minutes) },
    'fabric-flows': { type: 'string' },
    fabric: { type: 'string', multiple: true, default: Object.keys(FABRICS) },
    library: { type: 'string', default: 'repnet' },
    mode: { type: 'string' },
  },
});
const wanted = Number(values.flows);
const minutes = Number(values.minutes);
const until = performance.now() + 60_000 * minutes;
const { REPNET_FAULT_SEED: seed = String(randomInt(2 ** 31)) } = process.env;
console.log(`REPNET_FAULT_SEED=${seed}`);

const fabrics = [];
const without = values.mode === undefined ? skipNft() : 'one mode alone was wanted';
if (without) console.log(`no network namespaces: ${without}`);
else
  for (const fabric of values.fabric) {
    const share = values['fabric-flows'] ?? Math.ceil(wanted / 30 / values.fabric.length);
    fabrics.push(await soak(fabric, Number(share), values.library));
    console.log(JSON.stringify(fabrics.at(-1)));
  }

installPinnedVersions();
const nodes = pinnedVersions().flatMap(({ binary, installed }) => (installed ? [binary] : []));
if (nodes.length === 0) nodes.push(process.execPath);
const waves = [];
for (const busy of [false, true])
  for (let at = 0; at < nodes.length; at += 2) waves.push({ busy, binaries: nodes.slice(at, at + 2) });

const parts = [];
let left = Math.max(0, wanted - fabrics.reduce((sum, { flows }) => sum + flows, 0));
for (const [n, { busy, binaries }] of waves.entries()) {
  const share = Math.ceil(left / (waves.length - n) / binaries.length);
  const seconds = Math.max(1, (until - performance.now()) / 1_000 / (waves.length - n));
  const loop = `for (const end = Date.now() + ${1_100 * seconds}; Date.now() < end; );`;
  const loops = busy ? binaries.map(() => spawn(process.execPath, ['-e', loop])) : [];
  try {
    const outcomes = await Promise.all(
      binaries.map((binary, m) =>
        throughRelay(binary, share, seconds, Number(seed) + 1_000_000 * (2 * n + m), values),
      ),
    );
    for (const outcome of outcomes) {
      const { rooms, memory, ...rest } = outcome;
      console.log(JSON.stringify({ ...rest, busy, growth: growth(memory) }));
      parts.push({ ...outcome, busy });
      left -= outcome.flows;
    }
  } finally {
    for (const each of loops) each.kill('SIGKILL');
  }
}

const { text, ok } = reportOf({ seed, wanted, minutes, fabrics, without, parts });
console.log(text);
const full = wanted >= FULL.flows && minutes >= FULL.minutes && values.library === 'repnet' && !values.mode;
if (full) writeFileSync(new URL('../../docs/soak.md', import.meta.url), text);
process.exitCode = ok ? 0 : 1;
