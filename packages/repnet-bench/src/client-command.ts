/** `repnet-bench client` and `repnet-bench plan`: command line -> workload -> rows. */

import { createHash } from 'node:crypto';
import { createWriteStream, readFileSync, writeFileSync } from 'node:fs';
import { arch, cpus, hostname, platform, release } from 'node:os';
import { Readable, type Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { CommandLine, describeOptions, type OptionTable } from 'repnet-cli/command-line';
import {
  parseBytes,
  parseCount,
  parseDelay,
  parseEndpoint,
  parseRate,
  parseTimeout,
  UsageError,
} from 'repnet-cli/units';
import { type FlowSizes, fixedSize, parseCdf } from './cdf.js';
import { BenchClient, type BenchMode, type FlowRow } from './client.js';
import { canReplicate, createDialer, parseReplicaPort, parseThreshold } from './dial.js';
import { flowHeader, flowLine, planHeader, planLine } from './rows.js';
import {
  arrivalRate,
  closedLoop,
  type Direction,
  openLoop,
  type PlannedFlow,
  parseTrace,
  type Workload,
} from './schedule.js';
import { version } from './version.js';

const MODES: readonly BenchMode[] = ['net', 'off', 'syn', 'flow'];
const SIZE_UNITS: Record<string, number> = { bytes: 1, KB: 1000, KiB: 1024 };

export const clientOptions: OptionTable = {
  to: { value: 'HOST:PORT', help: 'server', repeat: true },
  mode: {
    value: 'MODE',
    help: 'net (plain node:net), off (repnet, not replicated), syn (RepSYN) or flow (RepFlow)',
    default: 'net',
  },
  bytes: { value: 'SIZE', help: 'every flow this long (20KB, 1MiB)' },
  sizes: { value: 'FILE', help: 'flow-size distribution: two columns, size and cumulative probability' },
  'size-unit': { value: 'UNIT', help: 'unit of that file: bytes, KB, KiB or packets', default: 'bytes' },
  'packet-bytes': { value: 'SIZE', help: 'bytes of a packet where the unit is packets', default: '1460B' },
  trace: { value: 'FILE', help: 'flows one by one: CSV with start_ns, bytes and optionally id, to, src' },
  source: { value: 'NAME', help: 'of the trace, only rows whose src is NAME' },
  closed: { value: 'N', help: 'closed loop: N workers, each one flow (or group) after another' },
  load: { value: 'SHARE', help: 'open loop: Poisson arrivals whose payload is this share of --rate' },
  rate: { value: 'RATE', help: 'of the link that --load refers to (1Gbps)' },
  arrivals: { value: 'N', help: 'open loop: Poisson arrivals, N flows (or groups) per second' },
  'fan-in': {
    value: 'N',
    help: 'flows of one size that start together: up to one server, or down from N servers',
    default: '1',
  },
  direction: { value: 'WAY', help: 'up (client sends) or down (server sends)', default: 'up' },
  flows: { value: 'N', help: 'most flows in all (1000, or no bound with --duration or --trace)' },
  duration: { value: 'TIME', help: 'start no flow after TIME' },
  'keep-alive': { help: 'reuse connections; without it every flow opens one' },
  threshold: { value: 'SIZE', help: 'longer flows are not replicated', default: '100KB' },
  'replica-port': { value: 'PORT', help: "the servers' second port (when not port + 1)" },
  'copy-delay': { value: 'TIME', help: 'hedge: start the second copy only after TIME', default: '0ms' },
  peer: {
    value: 'KIND',
    help: 'what the servers are: auto (the first flow finds out), repnet or plain',
    default: 'auto',
  },
  timeout: { value: 'TIME', help: 'give a flow up after TIME', default: '60s' },
  'max-in-flight': {
    value: 'N',
    help: 'open loop: a flow over this many is reported as ERR_BENCH_OVERLOAD, not sent',
    default: '10000',
  },
  precise: { help: 'open loop: start flows on the microsecond (keeps a core busy); else within about 1 ms' },
  seed: { value: 'N', help: 'all randomness follows from seed and stream', default: '1' },
  stream: {
    value: 'NAME',
    help: "name of this client's random streams; give each client of a run its own",
    default: 'client',
  },
  'start-at': {
    value: 'EPOCH',
    help: 'begin at this Unix time in seconds, so that several clients begin together',
  },
  out: { value: 'FILE', help: 'CSV of the flows (- is standard output)', default: '-' },
  summary: { value: 'FILE', help: 'JSON: what was asked for, on what machine, and the totals' },
};

export const clientHelp = `Send flows to repnet-bench servers and write one CSV row per flow.

Usage: repnet-bench client --to HOST:PORT [--to ...] (--bytes SIZE | --sizes FILE | --trace FILE) [options]
       repnet-bench plan   (the same options)     print the flows that would be sent, send nothing

${describeOptions(clientOptions)}

Exit code: 0 every flow ok, 1 some were not, 2 the command line is wrong.`;

interface ClientPlan {
  readonly workload: Workload;
  /** One list of groups per closed-loop worker; a single list in an open loop. */
  readonly workers: Iterable<PlannedFlow[]>[];
  readonly loop: 'open' | 'closed';
}

function flowSizes(line: CommandLine): FlowSizes {
  const given = ['bytes', 'sizes', 'trace'].filter((name) => line.has(name));
  if (given.length !== 1) {
    throw new UsageError(
      'ERR_USAGE',
      `give exactly one of --bytes, --sizes and --trace (got ${given.map((name) => `--${name}`).join(' and ') || 'none'})`,
    );
  }
  const bytes = line.parsed('bytes', parseBytes);
  if (bytes !== undefined) {
    if (bytes < 1) throw new UsageError('ERR_USAGE', '--bytes: a flow has at least 1 byte');
    return fixedSize(bytes);
  }
  const file = line.text('sizes');
  if (file === undefined) return fixedSize(1); // a trace holds its own sizes
  const unit = line.required('size-unit');
  const factor =
    unit === 'packets' ? parseBytes(line.required('packet-bytes'), '--packet-bytes') : SIZE_UNITS[unit];
  if (factor === undefined) {
    throw new UsageError(
      'ERR_USAGE',
      `--size-unit: '${unit}' is not one of ${Object.keys(SIZE_UNITS).join(', ')}, packets`,
    );
  }
  return parseCdf(readFileSync(file, 'utf8'), file, factor);
}

function makePlan(line: CommandLine): ClientPlan {
  const count = (name: string): number => parseCount(line.required(name), `--${name}`);
  const fanIn = count('fan-in');
  const workload: Workload = {
    sizes: flowSizes(line),
    servers: Math.max(1, line.texts('to').length),
    fanIn,
    direction: line.oneOf<Direction>('direction', ['up', 'down']),
    seed: parseCount(line.required('seed'), '--seed', 0),
    stream: line.required('stream'),
    flows: line.has('flows') ? count('flows') : line.has('duration') || line.has('trace') ? Infinity : 1000,
    duration: (line.parsed('duration', parseTimeout) ?? Infinity) * 1e6,
  };
  if (workload.flows < fanIn)
    throw new UsageError(
      'ERR_USAGE',
      `--flows: ${workload.flows} is less than one group of --fan-in ${fanIn}`,
    );
  const trace = line.text('trace');
  const loops = ['closed', 'load', 'arrivals', 'trace'].filter((name) => line.has(name));
  if (loops.length !== 1) {
    throw new UsageError(
      'ERR_USAGE',
      `give exactly one of --closed, --load, --arrivals and --trace (got ${loops.map((name) => `--${name}`).join(' and ') || 'none'})`,
    );
  }
  if (trace !== undefined) {
    const flows = parseTrace(readFileSync(trace, 'utf8'), trace, workload, line.text('source'));
    return { workload, workers: [flows.map((flow) => [flow])], loop: 'open' };
  }
  if (line.has('closed')) {
    const workers = count('closed');
    return {
      workload,
      workers: Array.from({ length: workers }, (_, worker) => closedLoop(workload, worker, workers)),
      loop: 'closed',
    };
  }
  let groupsPerSecond = Number(line.text('arrivals'));
  if (line.has('load')) {
    const load = Number(line.text('load'));
    if (!(load > 0 && load <= 1))
      throw new UsageError(
        'ERR_USAGE',
        `--load: '${line.text('load')}' is not a share above 0 and at most 1`,
      );
    if (!line.has('rate'))
      throw new UsageError('ERR_USAGE', '--load needs --rate, the rate of the link that it loads');
    groupsPerSecond = arrivalRate(workload, load, line.parsed('rate', parseRate)!);
  }
  if (!(groupsPerSecond > 0))
    throw new UsageError('ERR_USAGE', `--arrivals: '${line.text('arrivals')}' is not a number above 0`);
  return { workload, workers: [openLoop(workload, groupsPerSecond)], loop: 'open' };
}

function openOutput(file: string): Writable {
  const stream = file === '-' ? process.stdout : createWriteStream(file);
  stream.once('error', (error: NodeJS.ErrnoException) => {
    process.stderr.write(`repnet-bench: cannot write the rows: ${error.message} [${error.code}]\n`);
    process.exit(1); // flows that nobody records are not worth sending
  });
  return stream;
}

async function closeOutput(stream: Writable): Promise<void> {
  if (stream === process.stdout) return;
  await new Promise<void>((resolve) => stream.end(resolve));
}

/** `repnet-bench plan`. */
export async function planMain(argv: readonly string[]): Promise<number> {
  const line = new CommandLine(clientOptions, argv);
  const plan = makePlan(line);
  if (plan.loop === 'closed' && plan.workload.flows === Infinity)
    throw new UsageError(
      'ERR_USAGE',
      'plan: how many flows a closed loop has in --duration is known when they are sent; say how many to print: --flows',
    );
  const out = openOutput(line.required('out'));
  // As fast as they are read: a plan may be longer than memory, and its reader may have enough of
  // it.
  await pipeline(Readable.from(planLines(plan)), out, { end: false });
  await closeOutput(out);
  return 0;
}

function* planLines(plan: ClientPlan): Generator<string> {
  yield planHeader;
  for (const groups of plan.workers)
    for (const flows of groups) for (const flow of flows) yield planLine(flow);
}

interface Totals {
  flows: number;
  ok: number;
  failed: number;
  bytes: number;
  replicated: number;
  statuses: Record<string, number>;
}

function describeRun(
  argv: readonly string[],
  plan: ClientPlan,
  totals: Totals,
  seconds: number,
  library: unknown,
): object {
  const { points, mean } = plan.workload.sizes;
  return {
    tool: `repnet-bench ${version}`,
    node: process.version,
    machine: { host: hostname(), system: `${platform()} ${release()} ${arch()}`, cores: cpus().length },
    arguments: argv,
    sizes: {
      meanBytes: mean,
      digest: createHash('sha256').update(JSON.stringify(points)).digest('hex').slice(0, 16),
    },
    seconds,
    totals,
    library,
  };
}

/** `repnet-bench client`. */
export async function clientMain(argv: readonly string[]): Promise<number> {
  const line = new CommandLine(clientOptions, argv);
  const plan = makePlan(line);
  if (line.texts('to').length === 0)
    throw new UsageError('ERR_USAGE', '--to is needed: the HOST:PORT of a repnet-bench server');
  const mode = line.oneOf('mode', MODES);
  if ((mode === 'syn' || mode === 'flow') && !canReplicate())
    throw new Error(
      `--mode ${mode}: the library is switched off or does not know this version of Node, and would replicate no flow`,
    );
  const servers = line.texts('to').map((text) => parseEndpoint(text, '--to'));
  const replicaPort = line.parsed('replica-port', (text, where) => parseReplicaPort(text, where, servers));
  const maxInFlight = parseCount(line.required('max-in-flight'), '--max-in-flight');
  const dialer = createDialer({
    mode,
    servers,
    threshold: parseThreshold(line.required('threshold'), '--threshold'),
    replicaPort,
    copyDelay: line.parsed('copy-delay', parseDelay)!,
    peer: line.oneOf('peer', ['auto', 'repnet', 'plain']),
  });
  const totals: Totals = { flows: 0, ok: 0, failed: 0, bytes: 0, replicated: 0, statuses: {} };
  const out = openOutput(line.required('out'));
  out.write(flowHeader);
  const onRow = (row: FlowRow): void => {
    totals.flows++;
    totals[row.status === 'ok' ? 'ok' : 'failed']++;
    totals.bytes += row.verified;
    if (row.replicated) totals.replicated++;
    totals.statuses[row.status] = (totals.statuses[row.status] ?? 0) + 1;
    out.write(flowLine(row));
  };
  const client = new BenchClient({
    dialer,
    direction: plan.workload.direction,
    keepAlive: line.has('keep-alive'),
    timeout: line.parsed('timeout', parseTimeout)!,
    maxInFlight,
    precise: line.has('precise'),
    onRow,
  });
  await sleepUntil(line);
  const stop = new AbortController();
  const interrupt = (): void => stop.abort(); // flows in flight end and are written; a second signal kills
  process.once('SIGINT', interrupt).once('SIGTERM', interrupt);
  const limit =
    plan.loop === 'closed' && plan.workload.duration < Infinity
      ? setTimeout(interrupt, plan.workload.duration / 1e6)
      : undefined;
  const began = process.hrtime.bigint();
  if (plan.loop === 'closed') await client.closedLoop(plan.workers, stop.signal);
  else await client.openLoop(plan.workers[0]!, stop.signal);
  const seconds = Number(process.hrtime.bigint() - began) / 1e9;
  clearTimeout(limit);
  process.off('SIGINT', interrupt).off('SIGTERM', interrupt);
  await closeOutput(out);
  const summary = line.text('summary');
  if (summary !== undefined) {
    writeFileSync(
      summary,
      `${JSON.stringify(describeRun(argv, plan, totals, seconds, dialer.stats()), null, 2)}\n`,
    );
  }
  process.stderr.write(
    `${totals.ok} of ${totals.flows} flows ok, ${totals.bytes} bytes verified, ${seconds.toFixed(3)} s\n`,
  );
  for (const [status, count] of Object.entries(totals.statuses)) {
    if (status !== 'ok') process.stderr.write(`  ${count} flows: ${status}\n`);
  }
  return totals.failed === 0 ? 0 : 1;
}

async function sleepUntil(line: CommandLine): Promise<void> {
  const text = line.text('start-at');
  if (text === undefined) return;
  const wait = Number(text) * 1e3 - Date.now();
  if (!Number.isFinite(wait) || wait > 3_600_000) {
    throw new UsageError(
      'ERR_USAGE',
      `--start-at: '${text}' is not a Unix time in seconds within the next hour`,
    );
  }
  if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
}
