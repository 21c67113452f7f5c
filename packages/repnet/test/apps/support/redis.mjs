/** A real redis-server for tests: a free loopback port, nothing on disk. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { missing } from '../../lib/skips.mjs';
import { findProgram } from './process.mjs';
import { freePort } from './servers.mjs';

/** The path of redis-server, or undefined where it is not installed. */
export const redisProgram = await findProgram('redis-server');
export const skipRedis =
  redisProgram === undefined && missing('redis-server is not installed', 'apt-get install redis-server');

/** Start redis-server; resolves to its port. Ended with the test, by its id. */
export async function startRedis(t) {
  const port = await freePort();
  const child = spawn(
    redisProgram,
    ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'],
    { cwd: '/' },
  );
  const closed = once(child, 'close');
  t.after(async () => {
    child.kill();
    await closed;
  });
  await new Promise((resolve, reject) => {
    let log = '';
    child.stdout.setEncoding('utf8').on('data', (text) => {
      log += text;
      if (log.includes('Ready to accept connections')) resolve();
    });
    closed.then(() => reject(new Error(`redis-server did not start:\n${log}`)));
  });
  return port;
}
