/**
 * npm test: every test file on the Node that runs this, then what depends on Node on each other version that
 * ../node-versions pins; bounded in time. `npm test -- --node current` leaves the other versions out.
 */
import { spawnSync } from 'node:child_process';
import { appendFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { failureReport } from './lib/failure-report.mjs';
import { installPinnedVersions, pinnedVersions } from './lib/node-versions.mjs';

/**
 * Not repeated on the other versions: what measures this library's own memory or the paths of a network (minutes each), what the
 * compiler says of the types, and Node's own suite, which starts the versions that it is about.
 */
const ONCE = /\/(leak-|two-paths|bucket-sort|package-types|readme|node-suite)/;

/** The library's tests, and those of the programs beside it. */
const packages = new URL('../../', import.meta.url).pathname;
const files = ['repnet', 'repnet-bench', 'repnet-proxy'].flatMap((name) =>
  readdirSync(join(packages, name, 'test'), { recursive: true })
    .map((file) => join(name, 'test', String(file)))
    .filter((file) => /\.test\.(mjs|cjs|js)$/.test(file))
    .sort(),
);
const reporter = new URL('lib/summary-reporter.mjs', import.meta.url).href;
const hangReport = new URL('lib/hang-report.mjs', import.meta.url).href;
const scratch = mkdtempSync(join(tmpdir(), 'repnet-test-'));

/** Runs these files under node:test, with a share of the fault bench's flows; the counts, and whether all is well. */
function run(binary, version, chosen, share) {
  const counts = join(scratch, `${version}.json`);
  const hangs = join(scratch, version);
  mkdirSync(hangs);
  const reporters = ['spec', reporter].map((name) => `--test-reporter=${name}`);
  const destinations = ['stdout', counts].map((name) => `--test-reporter-destination=${name}`);
  const { status } = spawnSync(
    binary,
    [
      '--test',
      `--import=${hangReport}`,
      ...reporters,
      ...destinations,
      '--test-concurrency=4',
      '--test-timeout=1800000',
      ...chosen.map((file) => join(packages, file)),
    ],
    { stdio: 'inherit', env: { ...process.env, REPNET_HANG_REPORTS: hangs, REPNET_FAULT_SHARE: share } },
  );
  for (const name of readdirSync(hangs))
    console.log(`\n${name} did not end; what it had open:\n${readFileSync(join(hangs, name), 'utf8')}`);
  return { version, files: chosen.length, ok: status === 0, ...JSON.parse(readFileSync(counts, 'utf8')) };
}

const { node } = parseArgs({ options: { node: { type: 'string', default: 'all' } } }).values;
const current = process.versions.node;
const results = [];
const without = [];
try {
  const others = [];
  if (node !== 'current') {
    installPinnedVersions();
    for (const { major, version, binary, installed } of pinnedVersions())
      if (major !== Number.parseInt(current, 10)) (installed ? others : without).push({ version, binary });
  }
  results.push(run(process.execPath, current, files, 1));
  for (const { version, binary } of others) {
    console.log(`\nNode ${version}`);
    results.push(
      run(
        binary,
        version,
        files.filter((file) => !ONCE.test(file)),
        4,
      ),
    );
  }
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

console.log();
const sum = (name) => results.reduce((total, counts) => total + counts[name], 0);
for (const { version, files: count, tests, pass, fail, cancelled, skipped, duration_ms } of results)
  console.log(
    `Node ${version.padEnd(8)} ${count} files, ${tests} tests: ${pass} passed, ${fail + cancelled} failed, ${skipped} skipped, ${Math.round(duration_ms / 1000)} s`,
  );
for (const { version } of without)
  console.log(`Node ${version.padEnd(8)} not run: no binary for this platform`);
const reasons = new Map();
for (const { version, left } of results)
  for (const { test, why } of left) reasons.set(why, [...(reasons.get(why) ?? []), `${version} ${test}`]);
if (results.length > 1)
  reasons.set(
    'takes minutes, or is not about Node: run on one version',
    files.filter((file) => ONCE.test(file)),
  );
if (reasons.size > 0) console.log('\nSkipped:');
const { TAILCUT_SKIPPED } = process.env;
for (const [why, tests] of reasons) {
  const more = tests.length > 5 ? [`and ${tests.length - 5} more`] : [];
  const some = [...tests.slice(0, 5), ...more];
  console.log([`  ${why} (${tests.length})`, ...some].join('\n    '));
  if (TAILCUT_SKIPPED) appendFileSync(TAILCUT_SKIPPED, `  repnet: ${why}: ${some.join(', ')}\n`);
}
const failures = results.flatMap(({ version, failed }) => failed.map((each) => ({ version, ...each })));
if (failures.length > 0) console.log(`\nFailed:\n${failureReport(failures).join('\n')}\n`);
console.log(`${sum('pass')} passed, ${sum('fail') + sum('cancelled')} failed, ${sum('skipped')} skipped`);
process.exitCode = results.every(({ ok }) => ok) ? 0 : 1;
