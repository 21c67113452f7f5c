/**
 * The matrix of races: `node test/race/matrix.mjs` prints every row as the table of docs/happy-eyeballs.md.
 * Needs root and Linux.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { ALL, KINDS } from './rows.mjs';

/** Milliseconds that a client has for a row. An address that does not answer fails after three seconds. */
const LIMIT = 8_000;
/** Milliseconds between attempts, by default. */
const DELAY = 250;
/** Milliseconds by which a busy machine may be late. */
const SLACK = 60;

/** Measures rows in namespaces of their own; one object of times per row. */
export async function measure(rows) {
  const child = fileURLToPath(new URL('child.mjs', import.meta.url));
  const args = ['--net', '--mount', process.execPath, child, rows.join(','), String(LIMIT)];
  const process_ = spawn('unshare', args, { stdio: ['ignore', 'pipe', 'pipe'] });
  const [out, err] = await Promise.all(
    [process_.stdout, process_.stderr].map(async (stream) => (await stream.toArray()).join('')),
  );
  assert.equal(err, '');
  return out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
}

/** Fails if repnet was later than the best other client by more than one attempt delay, or lost a cause. */
export function assertNeverLate({ row, times: { syn, flow, ...others } }) {
  const connected = Object.values(others).filter((result) => result !== null && result.error === undefined);
  const best = Math.min(...connected.map(({ ms }) => ms));
  for (const [mode, result] of Object.entries({ syn, flow })) {
    const where = `${row}, ${mode}: ${JSON.stringify({ result, others })}`;
    assert.ok(result !== null, where);
    assert.ok(result.connects <= 1, where);
    assert.ok(result.seen.filter(({ bytes }) => bytes > 0).length <= 1, where);
    if (result.error !== undefined) {
      assert.equal(connected.length, 0, where);
      assert.equal(new Set(result.causes).size, row.length / 2, where);
    } else assert.ok(result.ms <= best + DELAY + SLACK, where);
  }
}

const CLIENTS = {
  net: 'net',
  curl: 'curl',
  Python: '`asyncio`',
  Go: 'Go',
  syn: "repnet `'syn'`",
  flow: "repnet `'flow'`",
};

function cell(result) {
  if (result === undefined || result === null) return '–';
  const ms = result.ms < 10 ? result.ms.toFixed(1) : result.ms.toFixed(0);
  return result.error === undefined ? ms : `*${ms}*`;
}

/** The rows as a Markdown table: milliseconds to the connection, in italics to the failure. */
export function table(results) {
  const words = (row) =>
    row
      .match(/\d\w/g)
      .map(([family, kind]) => `${KINDS[kind].split(/[: ]/)[0]} (${family})`)
      .join(', ');
  return [
    `| addresses (family) | ${Object.values(CLIENTS).join(' | ')} |`,
    `|---|${Object.keys(CLIENTS)
      .map(() => '---:|')
      .join('')}`,
    ...results.map(
      ({ row, times }) =>
        `| ${words(row)} | ${Object.keys(CLIENTS)
          .map((name) => cell(times[name]))
          .join(' | ')} |`,
    ),
  ].join('\n');
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const results = await measure(ALL);
  console.log(table(results));
  for (const result of results) assertNeverLate(result);
}
