/** Every row of the threat model names a test that there is. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

const model = readFileSync(new URL('../docs/threat-model.md', import.meta.url), 'utf8');
const [, table] = model.split('| attack | defence | test |\n|---|---|---|\n');
const rows = table.slice(0, table.indexOf('\n\n')).split('\n');

for (const row of rows) {
  const [, attack, , named] = row.split(/(?<!\\) ?\| ?/);
  test(`the threat model names a test of "${attack.slice(0, 60)}"`, () => {
    const [, file, title] = /^`([\w/-]+): ?(.*)`$/.exec(named) ?? assert.fail(`no test: ${row}`);
    const source = readFileSync(new URL(`${file}.test.mjs`, import.meta.url), 'utf8');
    const titles = [...source.matchAll(/\btest\(\s*(['"`])(.*?)\1,/gs)].map(([, , text]) => text);
    assert.ok(
      titles.some((text) => text.startsWith(title)),
      `${file}.test.mjs has no test "${title}"`,
    );
  });
}
