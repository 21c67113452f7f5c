/** What the primary of a cluster hears of a worker that listens: its port, once. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import net from 'node:net';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

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

async function listen(policy, name, options) {
  const args = [PROGRAM, policy, name, JSON.stringify(options)];
  // The successor of a port that the system chose may be in use by a connection: flows are plain then, and the program waits
  // for a second port in vain. It is started again, with another port.
  for (let attempt = 1; ; attempt++)
    try {
      return JSON.parse((await promisify(execFile)(process.execPath, args, { timeout: 20_000 })).stdout);
    } catch (error) {
      if (options.port !== 0 || !error.killed || attempt === 5) throw error;
    }
}

async function freePair() {
  const server = net.createServer().listen(20_000 + Math.floor(Math.random() * 10_000), '127.0.0.1');
  return new Promise((resolve) =>
    server
      .once('error', () => resolve(freePair()))
      .once('listening', () => {
        const { port } = server.address();
        server.close(() => resolve(port));
      }),
  );
}

for (const policy of ['rr', 'none'])
  for (const options of [{}, { exclusive: true }, { reusePort: true }])
    for (const random of [true, false])
      test(`${policy}, ${random ? 'a random port' : 'a port'}, ${JSON.stringify(options)}`, async (t) => {
        if (options.reusePort && !(await knowsReusePort())) return t.skip('no reusePort here');
        const port = random ? 0 : await freePair();
        const expected = await listen(policy, 'net', { port, ...options });
        const { replica, ...seen } = await listen(policy, 'repnet', { port, ...options });
        assert.deepEqual({ ...seen, replica: false }, expected);
        assert.equal(replica, 1);
      });
