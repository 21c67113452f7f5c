/** A version of Node whose net is another: repnet loads, says so once, and is plain net. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { PRIVATE_METHODS, PRIVATE_SYMBOLS } from '../dist/net-parts.js';

const run = promisify(execFile);
const here = (path) => fileURLToPath(new URL(path, import.meta.url));

const PARTS = [
  'Socket._handle',
  ...PRIVATE_METHODS,
  ...PRIVATE_SYMBOLS.map((name) => `symbol ${name}`),
  'a write',
  'an end',
  'listening',
];

/** What comes of a program without each part, and last with all of them. */
let seen;
before(async () => {
  const { stdout } = await run(process.execPath, [
    here('lib/unsupported-child.cjs'),
    JSON.stringify([...PARTS, '']),
  ]);
  seen = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
});

for (const [n, part] of PARTS.entries())
  test(`without ${part}: plain net, and one warning`, () => {
    assert.deepEqual(seen[n], {
      supported: false,
      replica: null,
      echoes: Array(3).fill(['some bytes', true, false]),
      option: 'ERR_REPNET_OPTION',
      page: 'page',
      stats: [4, 0, 0],
      warnings: ['RepnetWarning REPNET_UNSUPPORTED'],
    });
  });

test('with all of them: replicated, without a warning', () => {
  const { supported, replica, stats, warnings } = seen.at(-1);
  assert.equal(supported, true);
  assert.notEqual(replica, null);
  assert.deepEqual(stats, [1, 2, 1]);
  assert.deepEqual(warnings, []);
});

test('loaded in the middle of a read, whose number net keeps: replicated, without a warning', async () => {
  const { stdout, stderr } = await run(process.execPath, [here('lib/loaded-in-a-read.cjs')]);
  assert.deepEqual([stdout, stderr], ['true\n', '']);
});
