/** Packages as `npm pack` makes them, installed in a folder of their own, without a network. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { root, run } from './process.mjs';

/** The Node that runs this is the one that the programs' first lines find. */
export const env = { ...process.env, PATH: `${dirname(process.execPath)}${delimiter}${process.env.PATH}` };
delete env.NODE_PATH;

/** Packs and installs; the folder, which is the caller's to remove. `names`: the library, or it and packages beside it. */
export async function installPackage(names = ['repnet']) {
  const folder = mkdtempSync(join(tmpdir(), 'repnet-package-'));
  const npm = async (args, options) => {
    const { code, stderr } = await run('npm', [...args, '--cache', join(folder, 'cache')], {
      shell: process.platform === 'win32',
      ...options,
    });
    assert.equal(code, 0, stderr);
  };
  try {
    // What is built is packed: building anew would take it from under the tests that run beside.
    for (const name of names)
      await npm(['pack', '--ignore-scripts', '--pack-destination', folder], { cwd: join(root, '..', name) });
    writeFileSync(join(folder, 'package.json'), '{ "name": "consumer", "private": true }');
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    const tarballs = names.map((name) => join(folder, `${name}-${version}.tgz`));
    await npm(['install', ...tarballs, '--offline', '--ignore-scripts', '--no-audit', '--no-fund'], {
      cwd: folder,
    });
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    throw error;
  }
  return folder;
}
