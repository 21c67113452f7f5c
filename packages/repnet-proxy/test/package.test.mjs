/**
 * The programs as `npm pack` makes them, installed beside the library in a folder of their own
 * without a network.
 */
import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { env, installPackage } from '../../repnet/test/apps/support/installed-package.mjs';
import { run, start } from '../../repnet/test/apps/support/process.mjs';

const PROGRAMS = ['repnet-bench', 'repnet-proxy'];

let folder;
before(async () => {
  folder = await installPackage(['repnet', 'repnet-cli', ...PROGRAMS]);
});
after(() => rmSync(folder, { recursive: true, force: true }));

for (const name of PROGRAMS)
  test(`${name} --help`, async () => {
    const { code, stdout, stderr } = await run(join(folder, 'node_modules/.bin', name), ['--help'], {
      cwd: folder,
      env,
      shell: process.platform === 'win32',
    });
    assert.equal(code, 0, stderr);
    assert.ok(stdout.startsWith(name), stdout);
  });

test('repnet-bench sends flows through repnet-proxy', async (t) => {
  const options = { cwd: folder, env, shell: process.platform === 'win32' };
  const command = (name) => join(folder, 'node_modules/.bin', name);
  const server = await start(t, command('repnet-bench'), ['server', '--listen', '127.0.0.1:0'], options);
  const proxy = await start(
    t,
    command('repnet-proxy'),
    ['--listen', 'tcp://127.0.0.1:0', '--connect', `flow://127.0.0.1:${server.ready.port}`],
    options,
  );
  const client = await run(
    command('repnet-bench'),
    [
      'client',
      '--to',
      `127.0.0.1:${proxy.ready.listening[0].port}`,
      '--bytes',
      '20KB',
      '--closed',
      '2',
      '--flows',
      '20',
    ],
    options,
  );
  assert.equal(client.code, 0, client.stderr);
  assert.equal(client.stdout.trim().split('\n').length, 1 + 20);
});
