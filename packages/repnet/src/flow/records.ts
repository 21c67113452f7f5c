/** Data records of one write. */
import { dataHeader, RECORD_MAX_BYTES } from '../wire.js';

/** Splits into records of at most the longest length. */
export function pushRecords(parts: Buffer[], offset: number, bytes: Buffer): void {
  for (let at = 0; at < bytes.length; at += RECORD_MAX_BYTES) {
    const piece = bytes.length <= RECORD_MAX_BYTES ? bytes : bytes.subarray(at, at + RECORD_MAX_BYTES);
    parts.push(dataHeader(offset + at, piece.length), piece);
  }
}
