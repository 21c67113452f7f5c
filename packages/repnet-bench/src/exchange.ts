/** One client connection of the traffic generator, used for one exchange after another. */
import type { Socket } from 'node:net';
import { firstMismatch } from './payload.js';
import { pumpPayload } from './pump.js';
import type { Direction, PlannedFlow } from './schedule.js';
import { carriedBy, WinnerMeter, winnerName } from './winner.js';
import {
  clockName,
  decodeReceipt,
  encodeRequest,
  HEADER_BYTES,
  Op,
  type Receipt,
  Status,
  type WireError,
} from './wire.js';

export interface ExchangeResult {
  /** 'ok', or the code of what went wrong. */
  readonly status: string;
  /** ns (monotonic) when the last byte of the answer was read. */
  readonly finished: bigint;
  /**
   * ns (same clock) when the receiving application read the flow's last byte; null where the clocks
   * are not one.
   */
  readonly delivered: bigint | null;
  /** Payload bytes that were received and right. */
  readonly verified: number;
  /** Whether the library began two connections for the flow. */
  readonly replicated: boolean;
  /** The copy that brought most of the bytes first: to the server, and to the client. */
  readonly winner: { readonly up: string; readonly down: string };
}

const NOBODY = { up: '', down: '' };

interface Exchange {
  readonly flow: PlannedFlow;
  readonly direction: Direction;
  readonly settle: (result: ExchangeResult) => void;
  readonly timer: NodeJS.Timeout;
  receipt: Receipt | undefined;
  received: number;
  /**
   * The connection is to end after this exchange: it counts as done once it has, so that a stray
   * byte is not missed.
   */
  readonly last: boolean;
  result: ExchangeResult | undefined;
}

export class BenchConnection {
  readonly socket: Socket;
  readonly #meter: WinnerMeter;
  #pending: Buffer | undefined;
  #exchange: Exchange | undefined;
  #failure: string | undefined;
  #ended = false;

  constructor(socket: Socket) {
    this.socket = socket;
    this.#meter = new WinnerMeter(socket);
    socket.on('data', (chunk: Buffer) => this.#read(chunk));
    socket.on('error', (error: NodeJS.ErrnoException) => {
      this.#failure ??= error.code ?? error.name;
    });
    socket.on('end', () => {
      this.#ended = true;
    });
    socket.on('close', () => this.#closed());
  }

  /** Whether a further exchange can be started. */
  get reusable(): boolean {
    return (
      this.#exchange === undefined && this.#failure === undefined && !this.#ended && !this.socket.destroyed
    );
  }

  /**
   * Run one exchange; always settles, at the latest after `timeout` ms (the connection is then
   * destroyed).
   */
  run(flow: PlannedFlow, direction: Direction, last: boolean, timeout: number): Promise<ExchangeResult> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#failure ??= 'ERR_BENCH_TIMEOUT';
        this.socket.destroy();
        this.#fail(this.#failure);
      }, timeout);
      this.#exchange = {
        flow,
        direction,
        settle: resolve,
        timer,
        receipt: undefined,
        received: 0,
        last,
        result: undefined,
      };
      const op = direction === 'up' ? Op.UP : Op.DOWN;
      const header = encodeRequest({ op, last, key: flow.key, flow: flow.id, bytes: flow.bytes });
      if (direction === 'down') this.socket.write(header);
      else pumpPayload(this.socket, flow.key, flow.bytes, header, () => {});
    });
  }

  #read(chunk: Buffer): void {
    const exchange = this.#exchange;
    if (exchange === undefined || exchange.result !== undefined) {
      this.#abort('ERR_EXTRA_BYTES');
      return;
    }
    let data = chunk;
    if (exchange.receipt === undefined) {
      const need = HEADER_BYTES - (this.#pending?.length ?? 0);
      const part = data.subarray(0, need);
      this.#pending = this.#pending === undefined ? part : Buffer.concat([this.#pending, part]);
      if (part.length < need) return;
      data = data.subarray(need);
      try {
        exchange.receipt = decodeReceipt(this.#pending);
      } catch (error) {
        this.#abort((error as WireError).code);
        return;
      } finally {
        this.#pending = undefined;
      }
    }
    if (exchange.direction === 'down') {
      const wanted = exchange.flow.bytes - exchange.received;
      const payload = data.subarray(0, wanted);
      const wrong = firstMismatch(exchange.flow.key, exchange.received, payload);
      exchange.received += wrong < 0 ? payload.length : wrong;
      if (wrong >= 0) {
        this.#abort('ERR_CORRUPT');
        return;
      }
      data = data.subarray(payload.length);
      if (exchange.received < exchange.flow.bytes) return;
    }
    if (data.length > 0) this.#abort('ERR_EXTRA_BYTES');
    else this.#succeed(exchange, exchange.receipt);
  }

  #succeed(exchange: Exchange, receipt: Receipt): void {
    const finished = process.hrtime.bigint();
    const down = exchange.direction === 'down';
    const sharedClock = receipt.clock !== 0n && receipt.clock === clockName();
    const verified = down ? exchange.received : receipt.verified;
    const carried = carriedBy(this.socket);
    const right = receipt.status === Status.OK && verified === exchange.flow.bytes;
    exchange.result = {
      status: right ? 'ok' : 'ERR_CORRUPT',
      finished,
      delivered: down ? finished : sharedClock ? receipt.lastByte : null,
      verified: right ? verified : 0,
      replicated: carried !== false,
      winner: {
        // The server waits for a second connection of every flow, and cannot tell one that has
        // none.
        up: carried === 'flow' ? winnerName(receipt.winner) : '',
        down: winnerName(this.#meter.read()),
      },
    };
    if (!exchange.last) this.#settle(exchange.result);
  }

  #closed(): void {
    const result = this.#exchange?.result;
    if (result !== undefined && this.#ended && this.#failure === undefined) this.#settle(result);
    else this.#fail(this.#failure ?? 'ERR_EARLY_END');
  }

  #abort(code: string): void {
    this.#failure ??= code;
    this.socket.destroy();
    this.#fail(code);
  }

  #fail(status: string): void {
    const verified = this.#exchange?.direction === 'down' ? this.#exchange.received : 0;
    const replicated = carriedBy(this.socket) !== false;
    const finished = process.hrtime.bigint();
    this.#settle({ status, finished, delivered: null, verified, replicated, winner: NOBODY });
  }

  #settle(result: ExchangeResult): void {
    const exchange = this.#exchange;
    if (exchange === undefined) return;
    this.#exchange = undefined;
    clearTimeout(exchange.timer);
    exchange.settle(result);
  }
}
