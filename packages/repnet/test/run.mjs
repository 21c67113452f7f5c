/**
 * npm test: every test file on the oldest and the newest Node that are supported. `npm test -- --node all` also runs those
 * between, `--node current` only the Node that runs this; `--long` adds the tests of test/long, once. The Node that runs
 * this stands for its major version, those that ../node-versions pins for the others. Further words choose the files
 * whose paths have one of them: `npm test -- hedge`.
 *
 * TEST_TIMES=N prints the N slowest tests and files. TAILCUT_SKIPPED names a file to which a JSON line is added for each
 * reason for which tests were skipped.
 */
import { spawnSync } from 'node:child_process';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { failureReport } from './lib/failure-report.mjs';
import { installPinnedVersions, pinnedVersions } from './lib/node-versions.mjs';
import { processorTime } from './lib/processor-time.mjs';
import { skipLines, skipRecords, slowestLines } from './lib/run-report.mjs';
import { missing } from './lib/skips.mjs';

/**
 * Not repeated on the other versions: what takes minutes, what is about the compiler, bundlers, npm, the syntax of the source or a
 * page of the browser, what goes over connections of memory, processes of the programs, which use the public interface alone, the
 * short form of the soak (whose long form is of every version), memory, and Node's own suite, which starts the versions that
 * it is about.
 */
const ONCE = new RegExp(
  [
    '^(playground|repnet-bench)/',
    '^repnet-proxy/test/(package|proxy|replication)\\.',
    '/long/',
    '/(bounds-fuzz|closing-machine(-walk)?|machine|machine-walk-\\w+|quantiles|single-fault|threat-model|tidy-map)\\.',
    '/(bundled|examples|leak|race-matrix|node-internals|node-suite|package-types|readme|soak)\\.',
  ].join('|'),
);
/** Repeated by `--long` only: what is about the paths of a network. */
const NETWORKS = /\/(balancer|segment-loss|two-paths)\./;
const LONG = /\/long\//;

const CONCURRENCY = 4;
/** Milliseconds that a test file may take. */
const TIME_LIMIT = 1_800_000;

const {
  values: { node, long },
  positionals: words,
} = parseArgs({
  options: { node: { type: 'string', default: 'ends' }, long: { type: 'boolean', default: false } },
  allowPositionals: true,
});

/** The library's tests, and those of the programs beside it. */
const packages = new URL('../../', import.meta.url).pathname;
const files = ['repnet', 'repnet-bench', 'repnet-proxy', 'playground']
  .flatMap((name) =>
    readdirSync(join(packages, name, 'test'), { recursive: true })
      .map((file) => join(name, 'test', String(file)))
      .filter((file) => /\.test\.(mjs|cjs|js)$/.test(file))
      .sort(),
  )
  .filter((file) => long || !LONG.test(file))
  .filter((file) => words.length === 0 || words.some((word) => file.includes(word)));

/** The versions to run on, { version, binary, installed }, oldest first. */
function versions() {
  const current = { version: process.versions.node, binary: process.execPath, installed: true };
  if (node === 'current') return [current];
  installPinnedVersions();
  const all = pinnedVersions().map((pinned) =>
    pinned.major === Number.parseInt(current.version, 10) ? current : pinned,
  );
  const chosen = node === 'all' ? all : [all[0], all.at(-1)];
  return chosen.some(({ installed }) => installed) ? chosen : [current, ...chosen];
}

/** Whether a file is run on one version only. */
const once = (file) => ONCE.test(file) || (!long && NETWORKS.test(file));

const scratch = mkdtempSync(join(tmpdir(), 'repnet-test-'));

/** Runs these files under node:test, with a share of the fault bench's flows; the counts and times, and whether all is well. */
function run({ binary, version }, chosen, share) {
  const counts = join(scratch, `${version}.json`);
  const folders = { hangs: join(scratch, `${version}-hangs`), times: join(scratch, `${version}-times`) };
  for (const folder of Object.values(folders)) mkdirSync(folder);
  const library = (name) => new URL(`lib/${name}.mjs`, import.meta.url).href;
  const before = processorTime();
  const { status, signal } = spawnSync(
    binary,
    [
      '--test',
      ...['hang-report', 'file-times'].map((name) => `--import=${library(name)}`),
      ...['spec', library('summary-reporter')].map((name) => `--test-reporter=${name}`),
      ...['stdout', counts].map((name) => `--test-reporter-destination=${name}`),
      `--test-concurrency=${CONCURRENCY}`,
      `--test-timeout=${TIME_LIMIT}`,
      ...chosen.map((file) => join(packages, file)),
    ],
    {
      stdio: 'inherit',
      env: {
        ...process.env,
        REPNET_HANG_REPORTS: folders.hangs,
        REPNET_FILE_TIMES: folders.times,
        REPNET_FAULT_SHARE: share,
      },
    },
  );
  const processor = processorTime() - before;
  for (const name of readdirSync(folders.hangs))
    console.log(
      `\n${name} did not end; what it had open:\n${readFileSync(join(folders.hangs, name), 'utf8')}`,
    );
  const fileTimes = readdirSync(folders.times).map((name) =>
    JSON.parse(readFileSync(join(folders.times, name), 'utf8')),
  );
  const text = existsSync(counts) ? readFileSync(counts, 'utf8') : '';
  if (text === '')
    throw new Error(`The tests were interrupted (${signal ?? `exit ${status}`}), and have no result`);
  const summary = JSON.parse(text);
  return { version, files: chosen.length, ok: status === 0, processor, fileTimes, ...summary };
}

const results = [];
const left = [];
try {
  const chosen = versions();
  // Each version has others of the random flows, all of them together every one; `--long` has every one on each.
  const share = long ? 1 : chosen.filter(({ installed }) => installed).length;
  for (const each of chosen) {
    if (!each.installed) {
      left.push({ ...each, test: 'every test', why: missing('this Node has no binary for this platform') });
      continue;
    }
    const first = results.length === 0;
    console.log(`\nNode ${each.version}`);
    results.push(run(each, first ? files : files.filter((file) => !once(file)), share));
    left.push(...results.at(-1).left.map((test) => ({ ...test, version: each.version })));
  }
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

console.log();
const { TAILCUT_SKIPPED, TEST_TIMES } = process.env;
if (TEST_TIMES)
  for (const result of results) console.log(`${slowestLines(Number(TEST_TIMES), result).join('\n')}\n`);

const sum = (name) => results.reduce((total, counts) => total + counts[name], 0);
for (const {
  version,
  files: count,
  tests,
  pass,
  fail,
  cancelled,
  skipped,
  duration_ms,
  processor,
} of results)
  console.log(
    `Node ${version.padEnd(8)} ${count} files, ${tests} tests: ${pass} passed, ${fail + cancelled} failed, ${skipped} skipped, ${Math.round(duration_ms / 1000)} s, ${Math.round(processor)} s of a processor`,
  );
const onFirst = files.filter(once);
if (results.length > 1 && onFirst.length > 0) console.log(`On the first of them only: ${onFirst.join(', ')}`);
const records = skipRecords(left);
if (records.length > 0) console.log(`\nSkipped:\n${skipLines(records).join('\n')}`);
if (TAILCUT_SKIPPED)
  for (const record of records) appendFileSync(TAILCUT_SKIPPED, `${JSON.stringify(record)}\n`);
const failures = results.flatMap(({ version, failed }) => failed.map((each) => ({ version, ...each })));
if (failures.length > 0) console.log(`\nFailed:\n${failureReport(failures).join('\n')}\n`);
console.log(`${sum('pass')} passed, ${sum('fail') + sum('cancelled')} failed, ${sum('skipped')} skipped`);
process.exitCode = results.every(({ ok }) => ok) ? 0 : 1;
