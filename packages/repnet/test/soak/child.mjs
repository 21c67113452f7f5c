/**
 * child.mjs FABRIC LIBRARY FLOWS: in a network namespace of its own, so many flows through one fabric; prints one JSON line.
 */
import { execFileSync, fork } from 'node:child_process';
import cluster from 'node:cluster';
import net from 'node:net';
import repnet from '../../dist/index.js';
import { complete, misdeed, request } from '../lib/exchange.mjs';
import { messageOf } from '../lib/support.mjs';
import { FABRICS, flowOf, HOST } from './fabrics.mjs';

const [, , fabric, library, count] = process.argv;
const api = library === 'net' ? net : repnet;
const flows = Number(count);
const WIDTH = 64;
const TIMES = { pairTimeout: 300, waitTimeout: 900 };

execFileSync('ip', ['link', 'set', 'dev', 'lo', 'up']);
const { workers, rules } = FABRICS[fabric];
if (rules !== '') {
  execFileSync('nft', ['-f', '-'], { input: `${rules}\n` });
  // Connections that are over leave the table soon, which would be full otherwise; not so soon that a late FIN is nobody's.
  const timeouts = ['time_wait', 'close', 'last_ack', 'fin_wait'].map(
    (state) => `net.netfilter.nf_conntrack_tcp_timeout_${state}=20`,
  );
  execFileSync('sysctl', ['-q', '-w', 'net.netfilter.nf_conntrack_acct=1', ...timeouts]);
}
Object.assign(repnet.defaults, TIMES);

const env = { ...process.env, REPNET_SOAK_DEFAULTS: JSON.stringify(TIMES) };
const program = new URL('server.mjs', import.meta.url).pathname;
cluster.setupPrimary({ exec: program, args: [library] });
const servers =
  workers > 0
    ? Array.from({ length: workers }, () => cluster.fork(env).process)
    : [fork(program, [library], { env })];
await Promise.all(servers.map(messageOf));

const wrong = [];
const seeds = new Set();
const began = performance.now();
let next = 0;
await Promise.all(
  Array.from({ length: WIDTH }, async () => {
    while (next < flows) {
      const n = next++;
      const { server, connect, shape } = flowOf(fabric, n);
      const { port, threshold } = server;
      const options = library === 'net' ? {} : { threshold, ...connect };
      const { seed, client, hung } = await request(() => api.connect({ port, host: HOST, ...options }), {
        ...shape,
        seed: n + 1,
      });
      seeds.add(seed);
      const what = hung
        ? 'hung'
        : (misdeed(client, 'client') ?? (complete(client) ? undefined : 'the client has not all of it'));
      if (what !== undefined)
        wrong.push({
          n,
          what,
          errors: client.errors.map(String),
          bytes: client.bytes,
          server,
          connect,
          shape,
        });
    }
  }),
);
const seconds = (performance.now() - began) / 1_000;

/** What the servers say, once all their flows are over. */
const told = await Promise.all(
  servers.map((server) => {
    server.send('tell');
    return messageOf(server);
  }),
);
for (const [seed, what] of told.flatMap((each) => each.wrong))
  wrong.push({ n: seed - 1, what, ...flowOf(fabric, seed - 1) });
const times = new Map();
for (const seed of told.flatMap(({ seeds }) => seeds)) times.set(seed, (times.get(seed) ?? 0) + 1);
for (const seed of seeds) {
  const processes = times.get(seed) ?? 0;
  if (processes !== 1)
    wrong.push({ n: seed - 1, what: `${processes} processes had it`, ...flowOf(fabric, seed - 1) });
}

const { flowsFlow, flowsSyn, flowsPlain, copiesFailed } = repnet.stats();
process.stdout.write(
  `${JSON.stringify({ fabric, library, flows, seconds, lost: wrong.length, wrong: wrong.slice(0, 5), flowsFlow, flowsSyn, flowsPlain, copiesFailed })}\n`,
  () => process.exit(),
);
