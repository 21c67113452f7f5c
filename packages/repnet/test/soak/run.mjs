/**
 * npm run soak -- [--flows 100000] [--fabric cluster|nat|silent] [--library net|repnet] [--faults 40000]: so many flows in all, in
 * network namespaces of their own, and so many through the relay of ../faults.test.mjs, drawn anew; fails if one is lost. Needs
 * `unshare`, `ip` and `nft` (debian-packages.txt) and the right to make namespaces.
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { FABRICS } from './fabrics.mjs';
import { soak } from './soak.mjs';

const { values } = parseArgs({
  options: {
    flows: { type: 'string', default: '100000' },
    fabric: { type: 'string', multiple: true, default: Object.keys(FABRICS) },
    library: { type: 'string', default: 'repnet' },
    faults: { type: 'string', default: '40000' },
  },
});
const share = Math.ceil(Number(values.flows) / values.fabric.length);
let lost = 0;
for (const fabric of values.fabric) {
  const outcome = await soak(fabric, share, values.library);
  console.log(JSON.stringify(outcome));
  lost += outcome.lost;
}
console.log(`${share * values.fabric.length} flows, ${lost} lost`);
let failed = lost > 0;
if (Number(values.faults) > 0) {
  const file = fileURLToPath(new URL('../faults.test.mjs', import.meta.url));
  const env = { REPNET_FAULT_SEED: 'new', ...process.env, REPNET_FAULT_RUNS: values.faults };
  const { status } = spawnSync(process.execPath, ['--test-name-pattern=^random', file], {
    env,
    stdio: 'inherit',
  });
  failed ||= status !== 0;
}
process.exitCode = failed ? 1 : 0;
