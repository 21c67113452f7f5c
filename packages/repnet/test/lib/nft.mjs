import { spawnSync } from 'node:child_process';
import { missing } from './skips.mjs';

/** Why packets cannot be dropped in a namespace here, or false where they can. */
export function skipNft() {
  for (const program of ['unshare', 'ip', 'nft'])
    if (spawnSync(program, ['--help']).error)
      return missing(`${program} is not installed`, 'apt-get install util-linux iproute2 nftables');
  const rules =
    'table ip t { chain i { type filter hook input priority 0 ; tcp flags syn numgen inc mod 9 0-1 counter drop ; } ; }';
  const probe = spawnSync('unshare', ['--net', 'nft', rules], { encoding: 'utf8' });
  return probe.status !== 0 && missing(`namespaces or nftables are not permitted: ${probe.stderr.trim()}`);
}
