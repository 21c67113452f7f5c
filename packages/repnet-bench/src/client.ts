/**
 * The client of the traffic generator: starts the planned flows, open or closed loop, and gives one
 * row per flow.
 */
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { BenchConnection, type ExchangeResult } from './exchange.js';
import type { Direction, PlannedFlow } from './schedule.js';

export type BenchMode = 'net' | 'off' | 'syn' | 'flow';

export interface FlowRow {
  readonly flow: number;
  readonly group: number;
  readonly mode: BenchMode;
  readonly replicated: boolean;
  readonly to: number;
  readonly direction: Direction;
  readonly bytes: number;
  readonly scheduled: number | null;
  readonly start: number;
  readonly connect: number | null;
  readonly fct: number;
  readonly delivered: number | null;
  readonly winner: ExchangeResult['winner'];
  readonly verified: number;
  readonly status: string;
}

export interface Dialer {
  readonly mode: BenchMode;
  /** Returns whether a flow of this size is to be replicated. */
  replicates(bytes: number): boolean;
  /** Open a connection to server `to`, from a port of the caller's choice if it has one. */
  dial(to: number, replicated: boolean, localPort?: number): Socket;
}

export interface ClientOptions {
  readonly dialer: Dialer;
  readonly direction: Direction;
  /** Reuse a connection once its exchange has ended. */
  readonly keepAlive: boolean;
  /** ms after which a flow is given up. */
  readonly timeout: number;
  /**
   * Most flows in flight; a flow over it is not sent and reported as ERR_BENCH_OVERLOAD. A closed
   * loop has no such bound.
   */
  readonly maxInFlight: number;
  /** Start open-loop flows within microseconds of their time, at the price of a busy core. */
  readonly precise: boolean;
  readonly onRow: (row: FlowRow) => void;
}

export class BenchClient {
  readonly #options: ClientOptions;
  readonly #idle = new Map<string, BenchConnection[]>();
  #origin = 0n;
  #inFlight = 0;

  constructor(options: ClientOptions) {
    this.#options = options;
  }

  /**
   * Run closed-loop workers side by side, each one group at a time; `stop` ends them before their
   * next group.
   */
  async closedLoop(workers: Iterable<PlannedFlow[]>[], stop: AbortSignal): Promise<void> {
    this.#origin = process.hrtime.bigint();
    await Promise.all(
      workers.map(async (groups) => {
        for (const flows of groups) {
          if (stop.aborted) return;
          await Promise.all(flows.map((flow) => this.#run(flow, Number.POSITIVE_INFINITY)));
        }
      }),
    );
    this.#close();
  }

  /**
   * Start every group at its time, whatever became of the ones before, until `stop`; resolves when
   * the last flow has ended.
   */
  async openLoop(groups: Iterable<PlannedFlow[]>, stop: AbortSignal): Promise<void> {
    this.#origin = process.hrtime.bigint();
    const { maxInFlight } = this.#options;
    const running = new Set<Promise<void>>();
    for (const flows of groups) {
      await this.#until(flows[0]!.at!, stop);
      if (stop.aborted) break;
      for (const flow of flows) {
        const run: Promise<void> = this.#run(flow, maxInFlight).then(() => void running.delete(run));
        running.add(run);
      }
    }
    await Promise.all(running);
    this.#close();
  }

  #now(): number {
    return Number(process.hrtime.bigint() - this.#origin);
  }

  /**
   * Timers count whole milliseconds, so a flow starts up to about 1 ms late (`start` says when it
   * did) unless the last millisecond is spent polling, which keeps a core busy.
   */
  async #until(at: number, stop: AbortSignal): Promise<void> {
    const { precise } = this.#options;
    const left = (at - this.#now()) / 1e6;
    const whole = precise ? Math.floor(left) - 1 : Math.round(left);
    if (whole > 0) await sleep(whole, undefined, { signal: stop }).catch(() => {}); // stopped meanwhile
    while (precise && this.#now() < at && !stop.aborted)
      await new Promise((resolve) => setImmediate(resolve));
  }

  async #run(flow: PlannedFlow, mostInFlight: number): Promise<void> {
    const { dialer, direction, keepAlive, timeout, onRow } = this.#options;
    const replicated = dialer.replicates(flow.bytes);
    const shared = {
      flow: flow.id,
      group: flow.group,
      mode: dialer.mode,
      to: flow.to,
      direction,
      bytes: flow.bytes,
      scheduled: flow.at,
    };
    const start = this.#now();
    if (this.#inFlight >= mostInFlight) {
      onRow({
        ...shared,
        start,
        connect: null,
        fct: 0,
        delivered: null,
        replicated: false,
        winner: { up: '', down: '' },
        verified: 0,
        status: 'ERR_BENCH_OVERLOAD',
      });
      return;
    }
    this.#inFlight++;
    const pool = this.#pool(flow.to, replicated);
    let connection: BenchConnection | undefined;
    while (pool.length > 0 && connection === undefined) {
      const candidate = pool.pop()!;
      if (candidate.reusable) connection = candidate;
    }
    let connect: number | null = null;
    if (connection === undefined) {
      connection = new BenchConnection(dialer.dial(flow.to, replicated));
      connection.socket.once('connect', () => {
        connect = this.#now() - start;
      });
    }
    const result = await connection.run(flow, direction, !keepAlive, timeout);
    this.#inFlight--;
    const begun = this.#origin + BigInt(start);
    onRow({
      ...shared,
      start,
      connect,
      fct: Number(result.finished - begun),
      replicated: result.replicated,
      delivered: result.delivered === null ? null : Number(result.delivered - begun),
      winner: result.winner,
      verified: result.verified,
      status: result.status,
    });
    if (keepAlive && connection.reusable) pool.push(connection);
  }

  #pool(to: number, replicated: boolean): BenchConnection[] {
    const key = `${to}/${replicated}`;
    const pool = this.#idle.get(key) ?? [];
    this.#idle.set(key, pool);
    return pool;
  }

  #close(): void {
    for (const pool of this.#idle.values()) for (const connection of pool) connection.socket.end();
    this.#idle.clear();
  }
}
