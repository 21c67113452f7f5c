/**
 * Node's own `test-net-*` with `net` substituted. The tests are Node's and are not kept here: REPNET_NODE_SUITE names a
 * directory with `run`, `must.txt` and `hook.js`; REPNET_NODE_TESTS names checkouts of Node's test/ directory as
 * `version=directory,…`, each run by the binary in REPNET_NODE_<major>.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const tool = process.env.REPNET_NODE_SUITE ?? '';
const checkouts = (process.env.REPNET_NODE_TESTS ?? '')
  .split(',')
  .filter(Boolean)
  .map((entry) => entry.split('='));
const module = fileURLToPath(new URL('../dist/index.js', import.meta.url));

/** With replication on, these use the port after their own, or count what a listen takes. */
const BY_NATURE = [
  'sequential/test-net-server-address',
  'sequential/test-net-listen-shared-ports',
  'parallel/test-net-listen-twice',
];

const missing = !existsSync(join(tool, 'run'))
  ? 'REPNET_NODE_SUITE does not name the harness'
  : checkouts.length === 0
    ? 'REPNET_NODE_TESTS names no checkout'
    : false;

for (const [major, checkout] of missing ? [['none', '']] : checkouts)
  for (const mode of ['off', 'flow'])
    test(`Node ${major}'s net tests, replication ${mode}`, { skip: missing, timeout: 280_000 }, () => {
      const names = readFileSync(join(tool, 'must.txt'), 'utf8')
        .split('\n')
        .filter((line) => mode === 'off' || !BY_NATURE.some((name) => line.startsWith(`${name}.`)));
      const list = join(tmpdir(), `repnet-must-${process.pid}-${major}-${mode}.txt`);
      writeFileSync(list, names.join('\n'));
      const node = process.env[`REPNET_NODE_${major}`] ?? process.execPath;
      const args = ['--node', node, '--checkout', checkout, '--module', module, '--list', list, '-j', '2'];
      const run = spawnSync('python3', [join(tool, 'run'), ...args], {
        encoding: 'utf8',
        env: { ...process.env, REPNET_MODE: mode },
      });
      const failed = run.stdout.split('\n').filter((line) => /^(FAIL|TIMEOUT|FLAKY)/.test(line));
      assert.deepEqual(failed, [], run.stdout.slice(-400));
      assert.match(run.stdout, /# total \d+: PASS/);
    });
