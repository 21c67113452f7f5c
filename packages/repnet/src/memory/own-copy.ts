import { Buffer } from 'node:buffer';

/** Returns a copy in memory of its own: a few bytes that are kept must not keep the read, or the pool, that they came in. */
export function ownCopy(bytes: Uint8Array): Buffer {
  const copy = Buffer.allocUnsafeSlow(bytes.length);
  copy.set(bytes);
  return copy;
}
