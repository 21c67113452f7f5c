/**
 * The protocol between client and server of the traffic generator, one exchange after another on a
 * connection. Each header has 32 bytes; `bytes` of payload follow a request with op UP, and a
 * receipt of an op DOWN:
 *
 *   request = "RNB1" op(1) flags(1) 0(2) key(4) 0(4) flow(8) bytes(8)
 *   receipt = "RNR1" status(1) winner(1) 0(2) verified(8) clock(8) lastByte(8)
 *
 * Integers are big-endian. `lastByte` is the server's monotonic clock in ns when the last payload
 * byte reached its application and `clock` names that clock: where it equals the client's, both
 * processes share it (one kernel) and the difference is a time.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

export const HEADER_BYTES = 32;

export const Op = { UP: 1, DOWN: 2 } as const;
export const Flag = { LAST: 1 } as const;
export const Status = { OK: 0, CORRUPT: 1 } as const;

export interface Request {
  readonly op: number;
  /** Set: the server closes the connection after its answer. */
  readonly last: boolean;
  readonly key: number;
  readonly flow: number;
  readonly bytes: number;
}

/**
 * The copy that brought most of an exchange's bytes first; NONE without replication.
 */
export const Winner = { NONE: 0, PRIMARY: 1, REPLICA: 2 } as const;

export interface Receipt {
  readonly status: number;
  /** The winner of the bytes that the server received. */
  readonly winner: number;
  readonly verified: number;
  readonly clock: bigint;
  readonly lastByte: bigint;
}

export class WireError extends Error {
  readonly code = 'ERR_BENCH_WIRE';
}

export function encodeRequest(request: Request): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  header.write('RNB1', 'latin1');
  header[4] = request.op;
  header[5] = request.last ? Flag.LAST : 0;
  header.writeUInt32BE(request.key, 8);
  header.writeBigUInt64BE(BigInt(request.flow), 16);
  header.writeBigUInt64BE(BigInt(request.bytes), 24);
  return header;
}

export function decodeRequest(header: Buffer): Request {
  const op = header[4]!;
  if (header.toString('latin1', 0, 4) !== 'RNB1' || (op !== Op.UP && op !== Op.DOWN)) {
    throw new WireError('the peer does not speak the repnet-bench protocol (bad request header)');
  }
  const bytes = Number(header.readBigUInt64BE(24));
  if (bytes < 1 || !Number.isSafeInteger(bytes))
    throw new WireError(`a flow has between 1 and 2^53 - 1 bytes, not ${bytes}`);
  return {
    op,
    last: (header[5]! & Flag.LAST) !== 0,
    key: header.readUInt32BE(8),
    flow: Number(header.readBigUInt64BE(16)),
    bytes,
  };
}

export function encodeReceipt(receipt: Receipt): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  header.write('RNR1', 'latin1');
  header[4] = receipt.status;
  header[5] = receipt.winner;
  header.writeBigUInt64BE(BigInt(receipt.verified), 8);
  header.writeBigUInt64BE(receipt.clock, 16);
  header.writeBigUInt64BE(receipt.lastByte, 24);
  return header;
}

export function decodeReceipt(header: Buffer): Receipt {
  if (header.toString('latin1', 0, 4) !== 'RNR1') {
    throw new WireError('the peer does not speak the repnet-bench protocol (bad receipt header)');
  }
  return {
    status: header[4]!,
    winner: header[5]!,
    verified: Number(header.readBigUInt64BE(8)),
    clock: header.readBigUInt64BE(16),
    lastByte: header.readBigUInt64BE(24),
  };
}

let clock: bigint | undefined;

/**
 * Names this kernel's monotonic clock (the boot it counts from); 0 where the platform does not say.
 */
export function clockName(): bigint {
  if (clock === undefined) {
    try {
      const boot = readFileSync('/proc/sys/kernel/random/boot_id');
      clock = createHash('sha256').update(boot).digest().readBigUInt64BE(0) | 1n;
    } catch {
      clock = 0n;
    }
  }
  return clock;
}
