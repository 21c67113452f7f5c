/** A real PostgreSQL for tests: a cluster of its own in a temporary folder, on a free loopback port. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { missing } from '../../lib/skips.mjs';
import { certificate } from './certificate.mjs';
import { findProgram } from './process.mjs';
import { freePort } from './servers.mjs';

const folders = () => {
  try {
    return readdirSync('/usr/lib/postgresql').map((version) => `/usr/lib/postgresql/${version}/bin`);
  } catch {
    return [];
  }
};

const postgres = await findProgram('postgres', folders());
const initdb = await findProgram('initdb', folders());
export const skipPostgres =
  (postgres === undefined || initdb === undefined) &&
  missing('PostgreSQL is not installed', 'apt-get install postgresql');

/** PostgreSQL refuses to run as root: as root it runs as the user that the Debian package makes. */
function unprivileged() {
  if (process.getuid() !== 0) return {};
  const id = (flag) => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'latin1' }));
  return { uid: id('-u'), gid: id('-g') };
}

/** Start PostgreSQL with TLS allowed; resolves to its port. Ended with the test, by its id, and its folder removed. */
export async function startPostgres(t) {
  const user = unprivileged();
  const folder = mkdtempSync(path.join(tmpdir(), 'repnet-postgres-'));
  t.after(() => rmSync(folder, { recursive: true }));
  if (user.uid !== undefined) chownSync(folder, user.uid, user.gid);
  const data = path.join(folder, 'data');
  execFileSync(initdb, ['-D', data, '-U', 'tester', '-A', 'trust', '--no-sync', '-E', 'UTF8', '--locale=C'], {
    ...user,
    cwd: folder,
    stdio: 'ignore',
  });
  for (const [name, pem] of Object.entries(certificate())) {
    const file = path.join(data, `server.${name === 'cert' ? 'crt' : 'key'}`);
    writeFileSync(file, pem, { mode: 0o600 });
    if (user.uid !== undefined) chownSync(file, user.uid, user.gid);
  }
  const port = await freePort();
  const settings = {
    listen_addresses: '127.0.0.1',
    port,
    unix_socket_directories: folder,
    fsync: 'off',
    ssl: 'on',
    max_connections: 60,
  };
  const args = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const child = spawn(postgres, ['-D', data, ...args], { ...user, cwd: folder });
  const closed = once(child, 'close');
  t.after(async () => {
    child.kill('SIGINT'); // fast shutdown
    await closed;
  });
  await new Promise((resolve, reject) => {
    let log = '';
    child.stderr.setEncoding('utf8').on('data', (text) => {
      log += text;
      if (log.includes('ready to accept connections')) resolve();
    });
    closed.then(() => reject(new Error(`PostgreSQL did not start:\n${log}`)));
  });
  return port;
}
