/** The first program of the README, as a reader pastes it, with the package that `npm pack` makes. */
import assert from 'node:assert/strict';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { env, installPackage } from './support/installed-package.mjs';
import { root, runNode } from './support/process.mjs';
import { freePort } from './support/servers.mjs';

const [, asPasted] = readFileSync(join(root, 'README.md'), 'utf8').match(/```js\n(.*?)```/s);
const [, imported, required] = asPasted.match(/^(import .*?;) \/\/ CommonJS: (.*)$/m);

let folder;
let pasted;
before(async () => {
  folder = await installPackage();
  // Its ports may be taken on this machine.
  pasted = asPasted.replaceAll('7000', String(await freePort(1)));
});
after(() => rmSync(folder, { recursive: true, force: true }));

async function run(name, text) {
  writeFileSync(join(folder, name), text);
  const { code, stdout, stderr } = await runNode(join(folder, name), [], { cwd: folder, env });
  assert.deepEqual({ code, stdout, stderr }, { code: 0, stdout: 'carried twice\n', stderr: '' });
}

test('it runs as an ES module', () => run('pasted.mjs', pasted));

test('it runs as CommonJS, with the line that it names for that', () =>
  run('pasted.cjs', pasted.replace(imported, required)));

test('it compiles under tsc --strict', async () => {
  const files = ['pasted.mts', 'pasted.cts'];
  for (const name of files) writeFileSync(join(folder, name), pasted);
  const types = ['--types', 'node', '--typeRoots', join(root, '../node_modules/@types')];
  const { code, stdout } = await runNode(
    join(root, '../node_modules/typescript-7/bin/tsc'),
    ['--noEmit', '--strict', '--module', 'node16', '--target', 'es2022', ...types, ...files],
    { cwd: folder, env },
  );
  assert.equal(code, 0, stdout);
});
