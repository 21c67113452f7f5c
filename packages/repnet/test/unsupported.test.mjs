/** A version of Node whose net is another: repnet loads, says so once, and is plain net. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { PRIVATE_METHODS, PRIVATE_SYMBOLS } from '../dist/net-parts.js';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));

async function use(part) {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--require', here('lib/without-part.cjs'), here('lib/unsupported-child.cjs')],
    { env: { ...process.env, PART: part } },
  );
  return JSON.parse(stdout);
}

const PARTS = [
  'Socket._handle',
  ...PRIVATE_METHODS,
  ...PRIVATE_SYMBOLS.map((name) => `symbol ${name}`),
  'a write',
  'an end',
  'listening',
];

for (const part of PARTS)
  test(`without ${part}: plain net, and one warning`, async () => {
    assert.deepEqual(await use(part), {
      supported: false,
      replica: null,
      echoes: Array(3).fill(['some bytes', true, false]),
      option: 'ERR_REPNET_OPTION',
      page: 'page',
      stats: [4, 0, 0],
      warnings: ['RepnetWarning REPNET_UNSUPPORTED'],
    });
  });

test('with all of them: replicated, without a warning', async () => {
  const { supported, replica, stats, warnings } = await use('');
  assert.equal(supported, true);
  assert.notEqual(replica, null);
  assert.deepEqual(stats, [1, 2, 1]);
  assert.deepEqual(warnings, []);
});

test('loaded in the middle of a read, whose number net keeps: replicated, without a warning', async () => {
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [here('lib/loaded-in-a-read.cjs')]);
  assert.deepEqual([stdout, stderr], ['true\n', '']);
});
