/**
 * Node's own `test-net-*` with `net` substituted. Neither the tests, which are Node's, nor the harness that substitutes are
 * kept here. The harness (`run`, `hook.js`, `must.txt`) is looked for in ../shared/tools/node-net-suite beside the checkout
 * or where REPNET_NODE_SUITE says; Node's tests, a clone of its repository `node_test`, in ../node_test.git or where
 * REPNET_NODE_TESTS says.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { pinnedVersions } from './lib/node-versions.mjs';
import { missing as missingPart } from './lib/skips.mjs';

const beside = (path) => fileURLToPath(new URL(`../../../../${path}`, import.meta.url));
const harness = process.env.REPNET_NODE_SUITE ?? beside('shared/tools/node-net-suite');
const repository = process.env.REPNET_NODE_TESTS ?? beside('node_test.git');
const module = fileURLToPath(new URL('lib/told-net.cjs', import.meta.url));

/** Commits of `node_test` with the tests of the versions that are pinned: 20.11.1 and 24.12.0. */
const COMMITS = { '20.11.1': 'be779569', '24.12.0': '170b25ab' };
const subjects = pinnedVersions().filter(({ version }) => version in COMMITS);

/** Not asked for with replication on. */
const BY_NATURE = {
  'sequential/test-net-server-address': 'listens on adjacent ports at once',
  'sequential/test-net-listen-shared-ports': 'binds its own port + 1 exclusively',
  'parallel/test-net-listen-twice': "counts the messages that a cluster worker's one listen takes",
};

/** Nor with RepSYN: a race is told when its winner's hello is there, by then the test has looked, and closes its server. */
const LATER = {
  'parallel/test-net-connect-abort-controller':
    'looks for what its server was told of before the hello of a race is there',
};

/** Not asked for where RepSYN races to a second port where nobody is, and connects again to the first. */
const TWICE = {
  'parallel/test-net-autoselectfamily-default': "changes the process's default between the two",
};

/** Not asked for where RepSYN races to the one port of a server of net. */
const RACED = {
  ...TWICE,
  'parallel/test-net-autoselectfamily':
    'expects every address of a name to be tried in turn; a race is won by the one that answers',
};

/** `told`: what the client takes the servers for. A test dials each of its servers once, and a flow to one that is not known is plain. */
const RUNS = [
  { name: 'replication off', mode: 'off', left: {} },
  { name: 'RepFlow', mode: 'flow', told: 'repnet', left: BY_NATURE },
  { name: 'RepFlow at the client alone', mode: 'flow', told: 'repnet', side: 'client', left: {} },
  { name: 'RepSYN', mode: 'syn', told: 'repnet', left: { ...BY_NATURE, ...LATER } },
  { name: 'RepSYN at the client alone', mode: 'syn', told: 'repnet', side: 'client', left: TWICE },
  {
    name: 'RepSYN to unmodified servers',
    mode: 'syn',
    told: 'plain',
    side: 'client',
    left: RACED,
  },
];

function missing() {
  if (!existsSync(join(harness, 'run')))
    return missingPart('no harness at ../shared/tools/node-net-suite nor where REPNET_NODE_SUITE says');
  if (!existsSync(repository))
    return missingPart(
      "Node's tests are not at hand: no clone of node_test at ../node_test.git nor where REPNET_NODE_TESTS says",
    );
  const absent = subjects.filter(({ installed }) => !installed).map(({ version }) => version);
  return (
    absent.length > 0 &&
    missingPart(`Node ${absent.join(' and ')} not installed`, 'npm ci --prefix packages/repnet/node-versions')
  );
}
const skip = missing();

let scratch;
before(() => {
  if (skip) return;
  scratch = mkdtempSync(join(tmpdir(), 'repnet-node-suite-'));
  for (const { version } of subjects)
    execFileSync('python3', [
      join(harness, 'extract-tests'),
      repository,
      COMMITS[version],
      join(scratch, version),
    ]);
});
after(() => {
  if (scratch !== undefined) rmSync(scratch, { recursive: true });
});

/** One of Node's tests wants localhost to be ::1, too, as most machines have it; elsewhere in a mount namespace. */
function withHosts(command) {
  if (/^::1\s.*\blocalhost\b/m.test(readFileSync('/etc/hosts', 'latin1'))) return command;
  if (spawnSync('unshare', ['-m', 'true']).status !== 0)
    throw new Error('/etc/hosts has no "::1 localhost", and mount namespaces are not permitted');
  const mount = 'mount --bind "$0" /etc/hosts && exec "$@"';
  return ['unshare', '-m', 'sh', '-c', mount, join(harness, 'hosts6'), ...command];
}

for (const { version, binary } of subjects)
  for (const { name, mode, told = '', side, left } of RUNS)
    test(`Node ${version}'s own net tests, ${name}`, { skip }, async (t) => {
      const wanted = readFileSync(join(harness, 'must.txt'), 'utf8')
        .split('\n')
        .filter((line) => !Object.keys(left).some((test) => line.startsWith(`${test}.`)));
      const list = join(scratch, `${version}-${mode}-${told}-${side}.txt`);
      writeFileSync(list, wanted.join('\n'));
      const checkout = join(scratch, version);
      const [program, ...args] = withHosts(
        [
          'python3',
          join(harness, 'run'),
          '--node',
          binary,
          '--checkout',
          checkout,
          '--module',
          module,
        ].concat(['--list', list, '-j', '2'], side === undefined ? [] : ['--side', side]),
      );
      const child = spawn(program, args, { env: { ...process.env, REPNET_MODE: mode, REPNET_TOLD: told } });
      let output = '';
      child.stdout.setEncoding('utf8').on('data', (text) => (output += text));
      child.stderr.setEncoding('utf8').on('data', (text) => (output += text));
      await once(child, 'close');
      const [total] = /^# total .*$/m.exec(output) ?? assert.fail(output.slice(-2_000));
      t.diagnostic(`${total.slice(2)}; not asked for: ${Object.keys(left).join(', ') || 'none'}`);
      assert.deepEqual(
        output.split('\n').filter((line) => /^(FAIL|TIMEOUT|FLAKY|SKIP|INTERNALS)/.test(line)),
        [],
      );
      // All that must.txt names and this version has: 130 of 142 names on 20, every one on 24.
      const passed = Number(/PASS (\d+)/.exec(total)?.[1]);
      const asked = { 20: 130, 24: 142 }[Number.parseInt(version, 10)];
      const away = Object.keys(left).filter((test) => existsSync(join(checkout, 'test', `${test}.js`)));
      assert.equal(passed, asked - away.length);
    });
