/** The versions of Node that the tests run on: the one that runs them, and those that ../node-versions pins. */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('../../node-versions/', import.meta.url));
const lock = JSON.parse(readFileSync(`${folder}package-lock.json`, 'utf8'));

/** What is pinned: { major, version, binary, installed }, oldest first. The binaries are for Linux on x64. */
export function pinnedVersions() {
  return Object.entries(lock.packages)
    .filter(([path]) => path.startsWith('node_modules/'))
    .map(([path, { version }]) => {
      const binary = `${folder}${path}/bin/node`;
      return { major: Number.parseInt(version, 10), version, binary, installed: existsSync(binary) };
    })
    .sort((a, b) => a.major - b.major);
}

/** Installs what is pinned, unless that was done since the lock file last changed. Throws if npm cannot. */
export function installPinnedVersions() {
  const installed = `${folder}node_modules/.package-lock.json`;
  if (existsSync(installed) && statSync(installed).mtimeMs >= statSync(`${folder}package-lock.json`).mtimeMs)
    return;
  const { status } = spawnSync('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], {
    cwd: folder,
    stdio: 'inherit',
    shell: process.platform === 'win32',
  });
  if (status !== 0) throw new Error(`npm ci in ${folder} failed`);
}
