/** The first program of the README, as a reader pastes it, with the package that `npm pack` makes. */
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { env, installPackage } from './support/installed-package.mjs';
import { root, runNode } from './support/process.mjs';

const [, asPasted] = readFileSync(join(root, 'README.md'), 'utf8').match(/```js\n(.*?)```/s);
const [, imported, required] = asPasted.match(/^(import .*?;) \/\/ CommonJS: (.*)$/m);

const listens = (server, port) =>
  new Promise((resolve) => server.once('error', () => resolve(false)).listen(port, () => resolve(true)));

/** A port that is free, and the next one too: below those that the system gives to connections, of which others have many. */
async function freePair() {
  for (;;) {
    const port = 10_000 + randomInt(22_000);
    const servers = [createServer(), createServer()];
    const free = [await listens(servers[0], port), await listens(servers[1], port + 1)];
    for (const server of servers) await new Promise((resolve) => server.close(resolve));
    if (free.every(Boolean)) return port;
  }
}

let folder;
let pasted;
before(async () => {
  folder = await installPackage();
  // Its ports may be taken on this machine.
  pasted = asPasted.replaceAll('7000', String(await freePair()));
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
