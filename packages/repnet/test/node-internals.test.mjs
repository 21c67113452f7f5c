/** docs/node-internals.md lists every private part of Node that the source uses, and where. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { test } from 'node:test';
import repnet from '../dist/index.js';
import { PRIVATE_METHODS, PRIVATE_SYMBOLS } from '../dist/net-parts.js';
import { sources, usedInternals } from './lib/node-internals.mjs';

const page = readFileSync(new URL('../docs/node-internals.md', import.meta.url), 'utf8');
const rows = page
  .split('\n')
  .filter((line) => line.startsWith('| `'))
  .map((line) => line.split('|').map((cell) => cell.trim()))
  .map(([, parts, files]) => ({ parts: [...parts.matchAll(/`(\w+)`/g)].map(([, name]) => name), files }));

const used = usedInternals();
const listed = rows.flatMap(({ parts }) => parts);

test('every private part that the source uses is listed, once, and every one listed is used', () => {
  assert.deepEqual([...listed].sort(), [...used.keys()].sort());
});

for (const { parts, files } of rows)
  test(`${parts.join(', ')}: where`, () => {
    const users = new Set(parts.flatMap((part) => (used.get(part) ?? []).map((file) => basename(file))));
    assert.equal(files, [...users].sort().join(', '));
  });

test('what the library looks for when it is loaded is listed, and there', () => {
  const names = [...PRIVATE_METHODS.map((name) => name.split('.')[1]), ...PRIVATE_SYMBOLS];
  assert.deepEqual(
    names.filter((name) => !listed.includes(name)),
    [],
  );
  assert.equal(repnet.supported, true);
});

test('no stack is read', () => {
  const stacks = /prepareStackTrace|captureStackTrace|stackTraceLimit|CallSite/;
  assert.deepEqual(
    sources()
      .filter(([, text]) => stacks.test(text))
      .map(([file]) => file),
    [],
  );
});
