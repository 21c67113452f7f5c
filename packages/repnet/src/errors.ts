/** Errors of this package: each has a stable `code` beginning with ERR_REPNET_. */
import { getSystemErrorMap } from 'node:util';

export type RepnetErrorCode =
  | 'ERR_REPNET_OPTION'
  | 'ERR_REPNET_TRUNCATED'
  | 'ERR_REPNET_PROTOCOL'
  | 'ERR_REPNET_COPIES_FAILED'
  | 'ERR_REPNET_HANDOVER';

export class RepnetError extends Error {
  readonly code: RepnetErrorCode;
  constructor(code: RepnetErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'RepnetError';
    this.code = code;
  }
}

/**
 * Returns the error for a socket that cannot be sent to another process: it has no connection of
 * its own.
 */
export function handoverRefused(): RepnetError {
  return new RepnetError(
    'ERR_REPNET_HANDOVER',
    'A socket cannot be sent to another process while its flow has two connections, nor if bytes came with its hello; ' +
      'replicate: false, of the server or of connect, keeps flows on one connection',
  );
}

let errnos: Map<string, number> | undefined;

/** Returns the number of an error, which depends on the system. */
export function errnoOf(code: string): number | undefined {
  errnos ??= new Map([...getSystemErrorMap()].map(([errno, [name]]) => [name, errno]));
  return errnos.get(code);
}

/** Returns an error as Node gives for a system call that failed. */
export function systemError(code: string, syscall: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${syscall} ${code}`), { errno: errnoOf(code), code, syscall });
}

/** Returns net's error where it cannot listen. `errno`: the system's number. */
export function listenError(errno: number, address: string, port: number): NodeJS.ErrnoException {
  const [code, text] = getSystemErrorMap().get(errno) ?? ['UNKNOWN', 'unknown error'];
  const error = new Error(`listen ${code}: ${text} ${address}:${port}`);
  return Object.assign(error, { code, errno, syscall: 'listen', address, port });
}

/**
 * Returns whether the peer is gone. The system reports EPIPE for a reset that comes after the
 * peer's end.
 */
export function isReset(error: NodeJS.ErrnoException | undefined): boolean {
  return error?.code === 'ECONNRESET' || error?.code === 'EPIPE';
}

/** Returns the error for a bad option: its name, its value and the accepted values. */
export function optionError(name: string, value: unknown, expected: string): RepnetError {
  return new RepnetError(
    'ERR_REPNET_OPTION',
    `${name} is ${typeof value === 'string' ? `'${value}'` : String(value)}; expected ${expected}`,
  );
}

/** Returns the error for a peer that has said something impossible. */
export function protocolError(what: string): RepnetError {
  return new RepnetError('ERR_REPNET_PROTOCOL', `The peer said ${what}`);
}

/** Returns the error for a stream that ends too early; `total` is negative if it is not known. */
export function truncatedError(delivered: number, total: number): RepnetError {
  const of = total >= 0 ? ` of ${total}` : '';
  return new RepnetError('ERR_REPNET_TRUNCATED', `The stream broke off after ${delivered} bytes${of}`);
}
