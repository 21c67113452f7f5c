/**
 * The flows to send, with times and destinations, decided before anything is sent: from (seed, stream) and
 * the workload alone, never from how fast earlier flows were, so that modes compared with one seed
 * carry the same flows.
 */

import { UsageError } from 'repnet-cli/units';
import type { FlowSizes } from './cdf.js';
import { exponential, type RandomStream, randomStream } from './random.js';

export type Direction = 'up' | 'down';

export interface PlannedFlow {
  readonly id: number;
  /** Flows of one group start together (fan-in); a group of one otherwise. */
  readonly group: number;
  /** Chooses the payload bytes. */
  readonly key: number;
  readonly bytes: number;
  /** Index of the server. */
  readonly to: number;
  /**
   * Start in ns after the run's origin; null in a closed loop (when the worker's previous group has
   * ended).
   */
  readonly at: number | null;
}

export interface Workload {
  readonly sizes: FlowSizes;
  readonly servers: number;
  /** Flows of one size that start together. */
  readonly fanIn: number;
  readonly direction: Direction;
  readonly seed: number;
  /** Names this client's random streams; clients with one name draw the same flows. */
  readonly stream: string;
  /** Most flows in all. */
  readonly flows: number;
  /** Most ns of arrivals; Infinity for no bound. */
  readonly duration: number;
}

interface Draws {
  readonly sizes: RandomStream;
  readonly servers: RandomStream;
  readonly keys: RandomStream;
}

function draws(workload: Workload, entity: string): Draws {
  const stream = (purpose: string): RandomStream => randomStream(workload.seed, entity, purpose);
  return { sizes: stream('sizes'), servers: stream('servers'), keys: stream('keys') };
}

/**
 * One group. Sent 'up' it converges on one server (the paper's incast test, section IV-B2); fetched
 * 'down' it comes from consecutive servers and converges on this client (partition-aggregate).
 */
function group(workload: Workload, draw: Draws, index: number, at: number | null): PlannedFlow[] {
  const bytes = workload.sizes.sample(draw.sizes.next());
  const first = Math.floor(draw.servers.next() * workload.servers);
  return Array.from({ length: workload.fanIn }, (_, member) => ({
    id: index * workload.fanIn + member,
    group: index,
    key: draw.keys.uint32(),
    bytes,
    to: workload.direction === 'up' ? first : (first + member) % workload.servers,
    at,
  }));
}

/** Groups of a Poisson process of `groupsPerSecond`, in order of arrival. */
export function* openLoop(workload: Workload, groupsPerSecond: number): Generator<PlannedFlow[]> {
  const draw = draws(workload, workload.stream);
  const arrivals = randomStream(workload.seed, workload.stream, 'arrivals');
  let at = 0;
  for (let index = 0; (index + 1) * workload.fanIn <= workload.flows; index++) {
    at += exponential(arrivals, 1e9 / groupsPerSecond);
    if (at > workload.duration) return;
    yield group(workload, draw, index, Math.round(at));
  }
}

/**
 * The groups of one closed-loop worker of `workers`: each worker has streams of its own and every
 * `workers`-th group number, so that which worker is faster changes nobody's flows.
 */
export function* closedLoop(workload: Workload, worker: number, workers: number): Generator<PlannedFlow[]> {
  const draw = draws(workload, `${workload.stream}/worker ${worker}`);
  const groups = Math.floor(workload.flows / workload.fanIn);
  for (let index = worker; index < groups; index += workers) yield group(workload, draw, index, null);
}

/** Groups per second that load a link of `rate` bit/s with payload to the share `load`. */
export function arrivalRate(workload: Workload, load: number, rate: number): number {
  return (load * rate) / 8 / (workload.sizes.mean * workload.fanIn);
}

/**
 * Flows listed one by one: CSV with a header naming at least `start_ns` and `bytes`; `to` is a
 * server's index (default 0), `id` defaults to the row number, and of a `source` only the rows
 * whose `src` it is are this client's.
 * @throws UsageError ERR_TRACE naming file and line.
 */
export function parseTrace(text: string, file: string, workload: Workload, source?: string): PlannedFlow[] {
  const [header, ...rows] = text.split(/\r?\n/).filter((line) => line.trim() !== '' && !line.startsWith('#'));
  const names = (header ?? '').split(',').map((name) => name.trim());
  const column = (name: string): number => names.indexOf(name);
  for (const name of ['start_ns', 'bytes', ...(source === undefined ? [] : ['src'])]) {
    if (column(name) < 0)
      throw new UsageError('ERR_TRACE', `${file}:1: no column '${name}' in the header '${header ?? ''}'`);
  }
  const keys = randomStream(workload.seed, workload.stream, 'keys');
  const flows: PlannedFlow[] = [];
  rows.forEach((row, index) => {
    const cells = row.split(',').map((cell) => cell.trim());
    const number = (name: string, missing: number): number => {
      if (column(name) < 0) return missing;
      const value = Number(cells[column(name)]);
      if (cells[column(name)] === '' || !Number.isSafeInteger(value) || value < 0) {
        throw new UsageError(
          'ERR_TRACE',
          `${file}: row ${index + 1}: ${name} '${cells[column(name)] ?? ''}' is not a whole number`,
        );
      }
      return value;
    };
    if (source !== undefined && cells[column('src')] !== source) return;
    const to = number('to', 0);
    if (to >= workload.servers) {
      throw new UsageError(
        'ERR_TRACE',
        `${file}: row ${index + 1}: to ${to}, but there are ${workload.servers} servers (0-${workload.servers - 1})`,
      );
    }
    const id = number('id', index);
    const bytes = number('bytes', 0);
    if (bytes === 0) throw new UsageError('ERR_TRACE', `${file}: row ${index + 1}: bytes must be at least 1`);
    flows.push({ id, group: id, key: keys.uint32(), bytes, to, at: number('start_ns', 0) });
  });
  return flows
    .filter(({ at }) => at! <= workload.duration)
    .sort((a, b) => a.at! - b.at! || a.id - b.id)
    .slice(0, workload.flows);
}
