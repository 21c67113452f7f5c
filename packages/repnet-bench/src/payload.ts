/**
 * Payload bytes that both ends can compute, so that every byte is verified without sending a
 * checksum: a fixed pseudo-random block of prime length, read from a place that the flow's key
 * decides. A lost, doubled, swapped or foreign byte shows as a mismatch unless it is displaced by
 * an exact multiple of the period.
 */
import { randomStream } from './random.js';

const PERIOD = 1_048_573; // prime, so that no power-of-two displacement goes unnoticed
const LONGEST_SLICE = 65_536;

/** Made when the module loads, so that the first flow does not pay for it. */
const block = Buffer.allocUnsafeSlow(PERIOD + LONGEST_SLICE);
const words = randomStream(0, 'payload', 'block');
for (let i = 0; i + 4 <= PERIOD; i += 4) block.writeUInt32LE(words.uint32(), i);
block[PERIOD - 1] = 0xa5; // PERIOD is 4k + 1: the last byte has no word of its own
block.copyWithin(PERIOD, 0, LONGEST_SLICE); // so that a slice over the seam is contiguous

/**
 * At most 64 KiB of the payload of flow `key` from `offset`, ending at `end`; a view, not a copy:
 * never write to it.
 */
export function payloadSlice(key: number, offset: number, end: number): Buffer {
  const from = (key + offset) % PERIOD;
  return block.subarray(from, from + Math.min(LONGEST_SLICE, end - offset));
}

/** Offset in `chunk` of the first byte that is not the payload of flow `key` at `offset`, or -1. */
export function firstMismatch(key: number, offset: number, chunk: Buffer): number {
  for (let done = 0; done < chunk.length; ) {
    const expected = payloadSlice(key, offset + done, offset + chunk.length);
    const received = chunk.subarray(done, done + expected.length);
    if (!received.equals(expected)) {
      let index = 0;
      while (received[index] === expected[index]) index++;
      return done + index;
    }
    done += expected.length;
  }
  return -1;
}
