/**
 * The server of the traffic generator: checks every byte that comes up, sends what is asked for
 * down.
 */
import type { Server, Socket } from 'node:net';
import { firstMismatch } from './payload.js';
import { pumpPayload } from './pump.js';
import { WinnerMeter } from './winner.js';
import {
  clockName,
  decodeRequest,
  encodeReceipt,
  HEADER_BYTES,
  Op,
  type Request,
  Status,
  WireError,
} from './wire.js';

export interface ServerCounts {
  connections: number;
  open: number;
  exchanges: number;
  bytesUp: number;
  bytesDown: number;
  /** Exchanges in which a byte was wrong. */
  corrupt: number;
  /** Connections that ended by an error or inside an exchange. */
  broken: number;
}

/**
 * Answers the generator's requests on every connection of `server` (a net-like server that is or
 * will be listening).
 */
export function serve(server: Server): ServerCounts {
  const counts: ServerCounts = {
    connections: 0,
    open: 0,
    exchanges: 0,
    bytesUp: 0,
    bytesDown: 0,
    corrupt: 0,
    broken: 0,
  };
  server.on('connection', (socket) => answer(socket, counts));
  return counts;
}

function answer(socket: Socket, counts: ServerCounts): void {
  counts.connections++;
  counts.open++;
  let pending: Buffer | undefined; // part of a request header
  let request: Request | undefined;
  let received = 0;
  let corrupt = false;
  let answering = false;
  let broken = false;
  const meter = new WinnerMeter(socket);

  const finish = (): void => {
    const { op, last, bytes, key } = request!;
    const receipt = encodeReceipt({
      status: corrupt ? Status.CORRUPT : Status.OK,
      winner: meter.read(),
      verified: received,
      clock: clockName(),
      lastByte: process.hrtime.bigint(),
    });
    const done = (): void => {
      counts.exchanges++;
      answering = false;
      request = undefined;
    };
    if (corrupt) counts.corrupt++;
    if (op === Op.UP) {
      counts.bytesUp += bytes;
      done();
      if (last) socket.end(receipt);
      else socket.write(receipt);
      return;
    }
    answering = true;
    pumpPayload(socket, key, bytes, receipt, () => {
      counts.bytesDown += bytes;
      done();
      if (last) socket.end();
    });
  };

  socket.on('data', (chunk: Buffer) => {
    if (answering) {
      socket.destroy(new WireError('a request arrived before the answer to the last one was written'));
      return;
    }
    let at = 0;
    try {
      while (at < chunk.length) {
        if (request === undefined) {
          const need = HEADER_BYTES - (pending?.length ?? 0);
          const part = chunk.subarray(at, at + need);
          at += part.length;
          if (part.length < need) {
            pending = pending === undefined ? Buffer.from(part) : Buffer.concat([pending, part]);
            return;
          }
          request = decodeRequest(pending === undefined ? part : Buffer.concat([pending, part]));
          pending = undefined;
          received = 0;
          corrupt = false;
        }
        if (request.op === Op.UP) {
          const part = chunk.subarray(at, at + request.bytes - received);
          corrupt ||= firstMismatch(request.key, received, part) >= 0;
          received += part.length;
          at += part.length;
          if (received < request.bytes) continue;
        }
        finish();
        if (answering && at < chunk.length)
          throw new WireError('a request arrived before the answer to the last one was written');
      }
    } catch (error) {
      socket.destroy(error as Error);
    }
  });
  socket.on('error', () => {
    broken = true;
  });
  socket.on('close', () => {
    counts.open--;
    if (broken || request !== undefined) counts.broken++;
  });
}
