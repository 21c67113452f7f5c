/** What the primary of a cluster hears of a worker that listens: its port, once. */
import assert from 'node:assert/strict';
import net from 'node:net';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { run } from './apps/support/process.mjs';
import { notThisNode } from './lib/skips.mjs';
import { OWN_ADDRESS, ownPort } from './lib/support.mjs';

const PROGRAM = fileURLToPath(new URL('lib/listening-cluster.cjs', import.meta.url));

/** Whether this version and system know the option: otherwise a port of its own cannot be shared. */
async function knowsReusePort() {
  const server = net.createServer();
  const known = await new Promise((resolve) =>
    server
      .once('error', () => resolve(false))
      .listen({ port: 0, host: '127.0.0.1', reusePort: true }, () => {
        const other = net.createServer().once('error', () => resolve(false));
        const { port } = server.address();
        other.listen({ port, host: '127.0.0.1', reusePort: true }, () => other.close(() => resolve(true)));
      }),
  );
  server.close();
  return known;
}

// On an address that nobody else uses: the successor of whatever port it is, is free. (Of one that the system chooses it may be in use
// otherwise, and flows are plain then.)
async function listen(policy, name, options) {
  const { stdout } = await run(process.execPath, [
    PROGRAM,
    policy,
    name,
    OWN_ADDRESS,
    JSON.stringify(options),
  ]);
  return JSON.parse(stdout);
}

for (const policy of ['rr', 'none'])
  for (const options of [{}, { exclusive: true }, { reusePort: true }])
    for (const random of [true, false])
      test(`${policy}, ${random ? 'a random port' : 'a port'}, ${JSON.stringify(options)}`, async (t) => {
        if (options.reusePort && !(await knowsReusePort())) return t.skip(notThisNode('no reusePort'));
        const port = random ? 0 : ownPort();
        const expected = await listen(policy, 'net', { port, ...options });
        const { replica, ...seen } = await listen(policy, 'repnet', { port, ...options });
        assert.deepEqual({ ...seen, replica: false }, expected);
        assert.equal(replica, 1);
      });
