/**
 * child.mjs MODE BALANCES FLOWS: in a network namespace of its own, flows through a balancer (nftables, DNAT) to three backends, each of
 * which is restarted under way, one after the other; prints one JSON line.
 */
import { execFileSync, fork } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import { fileURLToPath } from 'node:url';
import repnet from '../../dist/index.js';
import { complete, misdeed, request } from '../lib/exchange.mjs';
import { until } from '../lib/support.mjs';
import { MODES } from './modes.mjs';

const [, , name, balances, count] = process.argv;
const { library = 'repnet', olderServers = false, ...further } = MODES[name];
// What is asked here is not whether a busy machine finds out in time what the servers are.
const options = { peer: 'repnet', ...further };
const VIP = '10.99.0.1';
const PORT = 7_000;
const BACKENDS = ['127.0.1.1', '127.0.1.2', '127.0.1.3'];
const TIMES = { pairTimeout: 500, waitTimeout: 1_000 };
const WIDTH = 16;
const RESTARTS = BACKENDS.length;

const sh = (program, ...args) => execFileSync(program, args, { stdio: ['pipe', 'ignore', 'inherit'] });
sh('ip', 'link', 'set', 'dev', 'lo', 'up');
sh('ip', 'addr', 'add', `${VIP}/32`, 'dev', 'lo');

/** New connections go to these backends from now on; those that there are stay where they are. */
function balance(to) {
  const by = { random: 'numgen random', source: 'jhash ip saddr . tcp sport' }[balances];
  const map = to.map((host, n) => `${n} : ${host}`).join(', ');
  const input = `add table ip balancer
add chain ip balancer output { type nat hook output priority -100 ; }
flush chain ip balancer output
add rule ip balancer output ip daddr ${VIP} tcp dport { ${PORT}, ${PORT + 1} } dnat to ${by} mod ${to.length} map { ${map} }
`;
  execFileSync('nft', ['-f', '-'], { input });
}

async function backend(host, older) {
  const child = fork(fileURLToPath(new URL('backend.mjs', import.meta.url)), [host, String(PORT), library], {
    env: { ...process.env, REPNET_DEFAULTS: JSON.stringify(TIMES) },
    execArgv: older ? ['--require', fileURLToPath(new URL('../lib/older.cjs', import.meta.url))] : [],
  });
  await once(child, 'message');
  return child;
}

Object.assign(repnet.defaults, TIMES);
const children = await Promise.all(BACKENDS.map((host, n) => backend(host, olderServers && n > 0)));
balance(BACKENDS);

const api = library === 'net' ? net : repnet;
const wrong = [];
const seeds = [];
const underWay = new Set();
const times = [];
let restarted = false;
async function worker() {
  while (!restarted || seeds.length < count) {
    const seed = seeds.length + 1;
    seeds.push(seed);
    underWay.add(seed);
    const shape = { seed, requestLength: 100 + (seed % 7) * 300, replyLength: 1_000 + (seed % 5) * 9_000 };
    const began = performance.now();
    const { client, hung } = await request(
      () => api.connect({ host: VIP, port: PORT, ...(library === 'net' ? {} : options) }),
      shape,
    );
    times.push(performance.now() - began);
    underWay.delete(seed);
    const what = hung
      ? 'hung'
      : (misdeed(client, 'client') ?? (complete(client) ? undefined : 'the client has not all of it'));
    if (what !== undefined) wrong.push({ seed, what, errors: client.errors.map(String) });
  }
}
const workers = Array.from({ length: WIDTH }, worker);

const told = [];
async function drain(child) {
  child.send('drain');
  const gone = once(child, 'disconnect').then(() => {
    throw new Error('a backend has ended without a word of its flows');
  });
  const [report] = await Promise.race([once(child, 'message'), gone]);
  told.push(report);
  if (child.exitCode === null) await once(child, 'exit');
}
const state = () => ({ done: times.length, underWay: [...underWay], wrong });
/** Restarts wait for flows, not for time: so many have gone by. */
async function flowsGoBy(more) {
  const enough = times.length + more;
  await until(() => times.length >= enough, 'flows go by', state);
}
/** Until all flows are over that are under way now: none of them is in the queue of a backend any more that is taken out. */
async function allOver() {
  const before = [...underWay];
  await until(() => !before.some((seed) => underWay.has(seed)), 'what was under way is over', state);
}
for (let n = 0; n < RESTARTS; n++) {
  await flowsGoBy(count / (RESTARTS + 1));
  balance(BACKENDS.filter((_, other) => other !== n));
  await allOver();
  await drain(children[n]);
  // Upgraded, in turn.
  children[n] = await backend(BACKENDS[n], false);
  balance(BACKENDS);
}
restarted = true;
await Promise.all(workers);
await Promise.all(children.map(drain));

const had = new Map();
for (const { seed, what, side } of told.flatMap(({ sides }) => sides)) {
  had.set(seed, (had.get(seed) ?? 0) + 1);
  if (what !== undefined) wrong.push({ seed, what, side });
}
for (const seed of seeds)
  if (had.get(seed) !== 1) wrong.push({ seed, what: `${had.get(seed)} backends had it` });
times.sort((a, b) => a - b);
const at = (share) => Number(times[Math.floor(share * times.length)].toFixed(2));
const sum = (counter) => told.reduce((total, each) => total + each[counter], 0);
const { flowsFlow, flowsSyn, copiesIssued } = repnet.stats();
console.log(
  JSON.stringify({
    mode: name,
    balances,
    flows: seeds.length,
    lost: wrong.length,
    wrong: wrong.slice(0, 5),
    flowsFlow,
    flowsSyn,
    copiesIssued,
    paired: sum('flowsPaired'),
    refused: sum('refused'),
    earlierPeers: sum('earlierPeers') + repnet.stats().earlierPeers,
    ms: { p50: at(0.5), p99: at(0.99) },
  }),
);
