/** Data records of one write. */
import { Buffer } from 'node:buffer';
import { dataHeader, RECORD_HEADER_BYTES, RECORD_MAX_BYTES } from '../wire.js';

/** Splits into records of at most the longest length. */
export function pushRecords(parts: Buffer[], offset: number, bytes: Buffer): void {
  for (let at = 0; at < bytes.length; at += RECORD_MAX_BYTES) {
    const piece = bytes.length <= RECORD_MAX_BYTES ? bytes : bytes.subarray(at, at + RECORD_MAX_BYTES);
    parts.push(dataHeader(offset + at, piece.length), piece);
  }
}

/** As `pushRecords`, of a copy of the bytes. */
export function copyRecords(offset: number, bytes: Buffer): Buffer[] {
  const records: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += RECORD_MAX_BYTES) {
    const length = Math.min(bytes.length - at, RECORD_MAX_BYTES);
    const record = Buffer.allocUnsafe(RECORD_HEADER_BYTES + length);
    dataHeader(offset + at, length, record);
    bytes.copy(record, RECORD_HEADER_BYTES, at, at + length);
    records.push(record);
  }
  return records;
}

/** The bytes of such records, without their headers; not another copy. */
export function payloads(records: readonly Buffer[]): Buffer[] {
  return records.map((record) => record.subarray(RECORD_HEADER_BYTES));
}
