/**
 * npm run bench:fabric: requests of 1 KB to 100 KB to Express, Redis and PostgreSQL over the kernel
 * lab's fabric, where one of three paths is congested: plain, by RepSYN, by RepFlow and through
 * repnet-proxy. Needs `make build` in the repository. Options: --seconds N (200) of each service,
 * --workers N (1) requests at a time, --only SERVICE, --readme: into repnet's README, with
 * results.json beside this, if every run was faithful. Prints the table; the last line is JSON.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { release, tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { SERVICES } from './fabric/services.mjs';
import { inReadme, README, render, rows } from './fabric/table.mjs';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '200' },
    workers: { type: 'string', default: '1' },
    only: { type: 'string' },
    readme: { type: 'boolean', default: false },
  },
});
const [seconds, workers] = [Number(values.seconds), Number(values.workers)];
/** Hosts of three-paths.toml. */
const [SERVER_HOST, CLIENT_HOST] = [2, 5];
/** Until servers answer and everything is warm. */
const SET_UP_SECONDS = 20;

const place = (path) => fileURLToPath(new URL(path, import.meta.url));
const python = place('../../../.venv/bin/python');

/** Returns the path of a program: in PATH, or among Debian's versions of PostgreSQL. */
function find(name) {
  const versions = existsSync('/usr/lib/postgresql') ? readdirSync('/usr/lib/postgresql') : [];
  const folders = [
    ...process.env.PATH.split(delimiter),
    ...versions.map((one) => `/usr/lib/postgresql/${one}/bin`),
  ];
  return folders.map((folder) => join(folder, name)).find(existsSync);
}

/** Prepares what a service needs besides Node; returns why it cannot be had. */
function prepare(service, folder) {
  if (service === 'redis') {
    const redis = find('redis-server');
    return redis === undefined
      ? { skipped: 'no redis-server (Debian package redis-server)' }
      : { programs: { redis } };
  }
  if (service === 'postgres') {
    const [postgres, initdb, unshare] = ['postgres', 'initdb', 'unshare'].map(find);
    if (postgres === undefined || initdb === undefined)
      return { skipped: 'no PostgreSQL (Debian package postgresql)' };
    if (unshare === undefined) return { skipped: 'no unshare (Debian package util-linux)' };
    const data = join(folder, 'data');
    const options = ['-D', data, '-U', 'tester', '-A', 'trust', '--no-sync', '-E', 'UTF8', '--locale=C'];
    execFileSync(unshare, ['--user', '--ipc', '--map-user=1000', initdb, ...options], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    appendFileSync(join(data, 'pg_hba.conf'), 'host all all 10.77.0.0/16 trust\n');
    return { programs: { postgres, data } };
  }
  return { programs: {} };
}

function measure(service) {
  const { name } = SERVICES[service];
  const folder = mkdtempSync(join(tmpdir(), 'repnet-fabric-'));
  try {
    const { programs, skipped } = prepare(service, folder);
    if (skipped !== undefined) return { name, skipped };
    const into = join(folder, 'took.json');
    const proxy = place('../../repnet-proxy/dist/main.js');
    const guest = (host, program, task) => ({
      host,
      command: [
        process.execPath,
        place(`fabric/${program}.mjs`),
        JSON.stringify({ service, proxy, ...task }),
      ],
    });
    const asked = {
      experiment: place('fabric/three-paths.toml'),
      set: { 'horizon.arrivals': `"${seconds + SET_UP_SECONDS}s"` },
      guests: [
        guest(SERVER_HOST, 'server', { programs }),
        guest(CLIENT_HOST, 'client', { seconds, workers, into }),
      ],
    };
    const { stdout, status } = spawnSync(python, ['-m', 'tailcut.lab.guests'], {
      input: `${JSON.stringify(asked)}\n`,
      encoding: 'utf8',
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const { unfaithful, failed: why } = JSON.parse(stdout || '{"failed": "the lab has said nothing"}');
    if (status !== 0) throw new Error(`${name}: ${why}`);
    if (!existsSync(into)) throw new Error(`${name}: its clients were not done in time`);
    const { took, failed } = JSON.parse(readFileSync(into, 'utf8'));
    return { name, measured: rows(took), failed, unfaithful };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

if (!existsSync(python)) throw new Error('the lab is not built: run `make build` in the repository');
const chosen = values.only === undefined ? Object.keys(SERVICES) : [values.only];
const services = [];
for (const service of chosen) {
  console.error(`${SERVICES[service].name}: ${seconds + SET_UP_SECONDS} s`);
  services.push(measure(service));
}
const date = new Date().toISOString().slice(0, 10);
const results = {
  date,
  node: process.versions.node,
  kernel: release().split('-')[0],
  seconds,
  workers,
  services,
};
console.log(`${render(results)}\n\n${JSON.stringify(results)}`);
if (values.readme) {
  if (values.only !== undefined || services.some(({ unfaithful = [] }) => unfaithful.length > 0)) {
    console.error('not in the README: it takes faithful runs of all services');
    process.exitCode = 1;
  } else {
    const readme = place('../../repnet/README.md');
    writeFileSync(place('fabric/results.json'), `${JSON.stringify(results, null, 2)}\n`);
    writeFileSync(readme, inReadme(readFileSync(readme, 'utf8'), `${README}\n\n${render(results)}`));
  }
}
