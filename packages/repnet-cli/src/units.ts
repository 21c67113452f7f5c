/**
 * Quantities with their unit spelled: a bare number is refused where a unit is meant. KB = 1000 B,
 * KiB = 1024 B.
 */

const BYTES: Record<string, number> = {
  B: 1,
  KB: 1e3,
  MB: 1e6,
  GB: 1e9,
  KiB: 1024,
  MiB: 1024 ** 2,
  GiB: 1024 ** 3,
};
const BITS_PER_SECOND: Record<string, number> = { bps: 1, Kbps: 1e3, Mbps: 1e6, Gbps: 1e9 };
const MICROSECONDS: Record<string, number> = { us: 1, ms: 1e3, s: 1e6, min: 60e6 };

/**
 * A mistake in what the user asked for: `code` is stable, the message names the place and the
 * remedy.
 */
export class UsageError extends Error {
  override readonly name = 'UsageError';
  readonly code: string;
  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

function quantity(text: string, where: string, units: Record<string, number>, kind: string): number {
  const match = /^(\d+(?:\.\d+)?)\s*([A-Za-z]*)$/.exec(text.trim());
  const names = Object.keys(units).join(', ');
  if (match === null) {
    throw new UsageError(
      'ERR_QUANTITY',
      `${where}: '${text}' is not a ${kind}; write a number and a unit (${names})`,
    );
  }
  const factor = units[match[2]!];
  if (factor === undefined) {
    const said = match[2] === '' ? 'has no unit' : `has the unknown unit '${match[2]}'`;
    throw new UsageError(
      'ERR_QUANTITY_UNIT',
      `${where}: '${text}' ${said}; a ${kind} is written with one of ${names}`,
    );
  }
  const product = Number(match[1]) * factor;
  // 64.1 times 1000 is 64099.99999999999 in binary fractions.
  const whole = Math.round(product);
  return Math.abs(product - whole) <= 4 * Number.EPSILON * whole ? whole : product;
}

/** '100KB' -> 100000 (bytes, whole). */
export function parseBytes(text: string, where: string): number {
  const bytes = quantity(text, where, BYTES, 'size');
  if (!Number.isSafeInteger(bytes)) {
    throw new UsageError('ERR_QUANTITY', `${where}: '${text}' is not a whole number of bytes`);
  }
  return bytes;
}

/** '1Gbps' -> 1e9 (bits per second). */
export function parseRate(text: string, where: string): number {
  const rate = quantity(text, where, BITS_PER_SECOND, 'rate');
  if (!(rate > 0)) throw new UsageError('ERR_QUANTITY', `${where}: '${text}' must be more than 0`);
  return rate;
}

/** '10ms' -> 10000 (microseconds). */
export function parseDuration(text: string, where: string): number {
  return quantity(text, where, MICROSECONDS, 'duration');
}

/** '2ms' -> 2 (milliseconds), as far as a timer goes: a longer one would expire at once. */
export function parseDelay(text: string, where: string): number {
  const milliseconds = parseDuration(text, where) / 1e3;
  if (milliseconds <= 0x7fff_ffff) return milliseconds;
  throw new UsageError('ERR_QUANTITY', `${where}: '${text}' is more than 24 days`);
}

/** As parseDelay, of what has to be more than nothing. */
export function parseTimeout(text: string, where: string): number {
  const milliseconds = parseDelay(text, where);
  if (milliseconds > 0) return milliseconds;
  throw new UsageError('ERR_QUANTITY', `${where}: '${text}' must be more than 0`);
}

/** A whole number in [min, max]. */
export function parseCount(text: string, where: string, min = 1, max = Number.MAX_SAFE_INTEGER): number {
  const count = Number(text);
  if (!/^\d+$/.test(text.trim()) || !Number.isSafeInteger(count) || count < min || count > max) {
    const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `between ${min} and ${max}`;
    throw new UsageError('ERR_COUNT', `${where}: '${text}' is not a whole number ${range}`);
  }
  return count;
}

/** One of a few words. */
export function parseChoice<T extends string>(text: string, where: string, choices: readonly T[]): T {
  if ((choices as readonly string[]).includes(text)) return text as T;
  throw new UsageError('ERR_USAGE', `${where}: '${text}' is not one of ${choices.join(', ')}`);
}

/** '5%' -> 0.05; 'none' -> Infinity: no limit. */
export function parseShare(text: string, where: string): number {
  if (text === 'none') return Number.POSITIVE_INFINITY;
  const match = /^(\d+(?:\.\d+)?)%$/.exec(text);
  if (match !== null) return Number(match[1]) / 100;
  throw new UsageError('ERR_QUANTITY', `${where}: '${text}' is not a share; write 5%, or none for no limit`);
}

export interface Endpoint {
  readonly host: string;
  readonly port: number;
}

/**
 * '10.0.0.2:8000' or '[fd00::2]:8000' -> host and port. Port 0 only where `allowZero` says so (a
 * listener's free port).
 */
export function parseEndpoint(text: string, where: string, allowZero = false): Endpoint {
  const match = /^(?:\[([^\]]+)\]|([^:]+)):(\d+)$/.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port > 65535 || (port === 0 && !allowZero)) {
    throw new UsageError(
      'ERR_ENDPOINT',
      `${where}: '${text}' is not HOST:PORT (IPv6 as [ADDRESS]:PORT, port 1-65535)`,
    );
  }
  return { host: match[1] ?? match[2]!, port };
}
