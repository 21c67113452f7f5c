/**
 * segment-loss-child.mjs CASE: flows in a network namespace of this process's own whose packets nftables drops by number.
 * Prints one JSON line: what became of each flow, and how many packets its rule dropped.
 *
 * A fault is { port, direction, packets, from, to }: of the packets to ('up') or from ('down') the server's first (port 0)
 * or second (port 1) port, those of the kind `packets`, counted from 1, from number `from` to number `to` are lost.
 */
import { execFileSync } from 'node:child_process';
import net from 'node:net';
import repnet from '../../../dist/index.js';
import '../../lib/far-away.mjs';
import { complete, misdeed, request, serve } from '../../lib/exchange.mjs';
import { grown, until } from '../../lib/support.mjs';
import { CASES } from './segment-loss-cases.mjs';

const HOST = '127.0.0.1';
const WIDTH = 48;
const { server: serverKind, replicate, addresses, flows } = CASES[process.argv[2]];

const KINDS = {
  syn: 'tcp flags & (syn|ack) == syn',
  synack: 'tcp flags & (syn|ack) == syn|ack',
  fin: 'tcp flags & fin == fin',
  rst: 'tcp flags & rst == rst',
  /** Everything after the handshake's first two: data, acknowledgements, FIN, RST. */
  segment: 'tcp flags & syn == 0',
};
const portOf = (index, offset) => 10_000 + 2 * index + offset;

/** Each rule counts the packets that it matches, so that it can drop those of given numbers. */
function rules() {
  const chains = [];
  const jumps = { dport: [], sport: [] };
  flows.forEach(({ faults }, index) => {
    for (const [n, { port, direction, packets, from, to }] of faults.entries()) {
      const name = `flow_${index}_${n}`;
      const number = `numgen inc mod 1000000000 ${from - 1}-${Math.min(to, 1_000_000_000) - 1}`;
      chains.push(`chain ${name} { ${KINDS[packets]} ${number} counter drop comment "${index}" ; }`);
      jumps[direction === 'up' ? 'dport' : 'sport'].push(`${portOf(index, port)} : jump ${name}`);
    }
  });
  const input = Object.entries(jumps)
    .filter(([, entries]) => entries.length > 0)
    .map(([field, entries]) => `tcp ${field} vmap { ${entries.join(', ')} }`);
  return `table ip loss {\n${chains.join('\n')}\nchain input { type filter hook input priority 0 ;\n${input.join('\n')}\n}\n}\n`;
}

/** Packets that were dropped, by flow. */
function dropped() {
  const counts = flows.map(() => 0);
  const { nftables } = JSON.parse(
    execFileSync('nft', ['-j', 'list', 'table', 'ip', 'loss'], { encoding: 'utf8' }),
  );
  for (const { rule } of nftables)
    if (rule?.comment !== undefined)
      counts[Number(rule.comment)] += rule.expr.find(({ counter }) => counter).counter.packets;
  return counts;
}

execFileSync('ip', ['link', 'set', 'dev', 'lo', 'mtu', '1500', 'gso_max_segs', '1', 'up']);
// Retransmissions of data after 20 ms rather than 200; those of SYNs stay at a second.
execFileSync('ip', [
  'route',
  'change',
  'local',
  HOST,
  'dev',
  'lo',
  'table',
  'local',
  'src',
  HOST,
  'rto_min',
  '20ms',
]);

Object.assign(repnet.defaults, { pairTimeout: 500, waitTimeout: 800 });
const seen = new Map();
const servers = flows.map(() =>
  serverKind === 'plain' ? net.createServer() : repnet.createServer({ addresses }),
);
for (const [index, server] of servers.entries()) {
  serve(server, seen);
  await new Promise((resolve, reject) => {
    server.once('error', reject).listen(portOf(index, 0), HOST, resolve);
  });
}
// A server that has just begun holds flows back that begin with their second connection.
if (serverKind !== 'plain') await grown();
execFileSync('nft', ['-f', '-'], { input: rules() });

async function flow({ shape, connect }, index) {
  const began = performance.now();
  const { seed, client, hung } = await request(
    () => repnet.connect({ host: HOST, port: portOf(index, 0), replicate, ...connect }),
    shape,
  );
  const took = performance.now() - began;
  // The server hears of the end after the client, by a retransmission at the latest.
  let unheard;
  if (!hung)
    await until(() => (seen.get(seed)?.closes ?? 0) > 0, 'the server has closed the flow').catch((error) => {
      unheard = error.message;
    });
  const server = seen.get(seed);
  const once = [client, server].every(
    (side) => side?.ends === 1 && side.closes === 1 && side.connections === 1,
  );
  const wrong =
    (hung ? 'hung' : undefined) ??
    misdeed(client, 'client') ??
    unheard ??
    (server === undefined ? 'the server saw nothing' : misdeed(server, 'server')) ??
    (complete(client) && complete(server) && once ? undefined : 'not complete');
  const tell = (side) =>
    side && [side.bytes, side.expected, side.ends, side.closes, ...side.errors.map(String)];
  return { wrong, took, client: tell(client), server: tell(server) };
}

const outcomes = [];
const queue = flows.entries();
await Promise.all(
  Array.from({ length: WIDTH }, async () => {
    for (const [index, each] of queue) outcomes[index] = await flow(each, index);
  }),
);
const counts = dropped();
process.stdout.write(
  `${JSON.stringify(outcomes.map((outcome, index) => ({ ...outcome, dropped: counts[index] })))}\n`,
  () => process.exit(),
);
