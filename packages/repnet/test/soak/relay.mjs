/**
 * relay.mjs LIBRARY FLOWS SECONDS SEED [MODE]: so many flows, for so long at most, through the relay that breaks connections by plan; of
 * `repnet` each mode in turn, or one alone, with an end of the same version and with one of version 1; of `net` single connections, which
 * say what the relay, the requests and the judging cost by themselves. Prints one JSON line. Wants `--expose-gc`.
 */
import net from 'node:net';
import fc from 'fast-check';
import { grownUp, startFaultBench } from '../lib/fault-bench.mjs';
import { acceptBoth, acceptHedged, scenario, whole } from '../lib/fault-judge.mjs';
import { firstVersion } from '../lib/first-version.mjs';
import { acceptRace, startRaceBench } from './race-bench.mjs';

const [library, ...limits] = process.argv.slice(2, 6);
const [count, seconds, seed] = limits.map(Number);
const [only] = process.argv.slice(6);
/** Flows at a time that are bound to end, and beside them those that may hang by their plan, which wait and cost nothing. */
const WIDTH = 256;
const MOST_SILENT = 1_024;
/** For what may hang; of others a hang is a fault, and told late. */
const STALLED = 4_000;
const BATCH = 1_000;
const SAMPLE = 2_000;
const TIMES = { pairTimeout: 500, waitTimeout: 1_200 };

const MODES = {
  RepFlow: { accept: whole(acceptBoth) },
  'RepFlow hedged': { connect: { copyDelay: 1 }, accept: acceptHedged },
  'RepFlow hedged, p95': { connect: { copyDelay: 'p95', coldDelay: 1 }, accept: acceptHedged },
  RepSYN: { races: true, accept: acceptRace },
};
const PLAIN = { 'plain net': { api: net, races: true, accept: acceptRace } };
const VERSIONS = { 'the same': undefined, 'version 1': firstVersion };
const [modes, versions] = library === 'net' ? [PLAIN, { none: undefined }] : [MODES, VERSIONS];
const rooms = [];
const chosen = Object.entries(modes).filter(([mode]) => only === undefined || mode === only);
if (chosen.length === 0) throw new Error(`no mode ${only}; there are ${Object.keys(modes).join('; ')}`);
for (const [mode, { accept, races, ...options }] of chosen)
  for (const [version, alters] of Object.entries(versions)) {
    const bench = await (races ? startRaceBench : startFaultBench)({ ...TIMES, ...options, alters });
    const tally = { mode, peer: version, flows: 0, complete: 0, failed: 0, hung: 0, wrong: 0 };
    rooms.push({ accept, bench, tally, races });
  }
const shape = { requestLength: 1_000, replyLength: 2_000 };
await Promise.all(rooms.map(({ bench, races }) => races || grownUp(bench, shape)));

const began = performance.now();
const wrong = [];
const memory = [];
let begun = 0;
let ended = 0;
let batch = [];
function next() {
  if (batch.length === 0)
    batch = fc.sample(scenario, { seed: (seed + Math.floor(begun / BATCH)) | 0, numRuns: BATCH }).reverse();
  return batch.pop();
}

/** What a collection frees outside the heap, often several times what is in use, is counted as free when the next one begins. */
function remember() {
  globalThis.gc();
  globalThis.gc();
  const { heapUsed, external } = process.memoryUsage();
  memory.push(Math.round((heapUsed + external) / 1024));
}

/** `timeout`: of silence. A busy machine is slow, and silent is only what has fallen silent. */
async function carry({ accept, bench, tally }, { faults, shape }, timeout) {
  let silent = timeout === undefined;
  const fallen = () => {
    silent = true;
  };
  const told = faults.map((fault) => ({ ...fault, fallen }));
  const outcome = await bench.flow(told, { ...shape, counts: () => silent }, { timeout });
  const complaint =
    accept(outcome, faults) ?? (outcome.hung && !silent ? 'hung, and nothing had fallen silent' : undefined);
  tally.flows++;
  tally[outcome.complete ? 'complete' : outcome.hung ? 'hung' : 'failed']++;
  if (complaint !== undefined) {
    tally.wrong++;
    if (wrong.length < 5) wrong.push(`${tally.mode}, ${tally.peer}: ${complaint}: ${outcome.describe()}`);
  }
  if (++ended % SAMPLE === 0) remember();
}

const silent = new Set();
async function worker() {
  while (begun < count && performance.now() - began < 1_000 * seconds) {
    const plan = next();
    const room = rooms[begun++ % rooms.length];
    if (!room.accept.mayHang(plan.faults)) {
      await carry(room, plan);
      continue;
    }
    if (silent.size >= MOST_SILENT) await Promise.race(silent);
    const flow = carry(room, plan, STALLED).finally(() => silent.delete(flow));
    silent.add(flow);
  }
}
await Promise.all(Array.from({ length: WIDTH }, worker));
await Promise.all(silent);
remember();

const { user, system } = process.cpuUsage();
const outcome = {
  node: process.versions.node,
  seed,
  flows: ended,
  seconds: Math.round((performance.now() - began) / 1_000),
  cpu: Math.round((user + system) / 1e6),
  rooms: rooms.map(({ tally }) => tally),
  wrong,
  memory,
};
process.stdout.write(`${JSON.stringify(outcome)}\n`, () => process.exit());
