// Runs the test files one after another under node:test, bounded in time.
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';

const root = new URL('.', import.meta.url).pathname;
const files = readdirSync(root, { recursive: true })
  .map(String)
  .filter((f) => /\.test\.(mjs|cjs|js)$/.test(f))
  .sort()
  .map((f) => root + f);
if (files.length > 0) {
  const r = spawnSync(
    process.execPath,
    ['--test', '--test-concurrency=2', '--test-timeout=300000', ...files],
    { stdio: 'inherit' },
  );
  process.exit(r.status ?? 1);
}
