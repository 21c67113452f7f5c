/**
 * npm run soak -- --flows 100000 [--fabric cluster|nat|silent] [--library net|repnet]: so many flows in all, in network namespaces
 * of their own; fails if one is lost. Needs `unshare`, `ip` and `nft` (debian-packages.txt) and the right to make namespaces.
 */
import { parseArgs } from 'node:util';
import { FABRICS } from './fabrics.mjs';
import { soak } from './soak.mjs';

const { values } = parseArgs({
  options: {
    flows: { type: 'string', default: '100000' },
    fabric: { type: 'string', multiple: true, default: Object.keys(FABRICS) },
    library: { type: 'string', default: 'repnet' },
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
process.exitCode = lost === 0 ? 0 : 1;
