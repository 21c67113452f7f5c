/**
 * The replica connection's wire format (docs/wire-format.md): a hello, its answer, then records.
 * Pure functions and one incremental parser; no sockets. All integers are big-endian.
 */
import { Buffer } from 'node:buffer';
import { isIPv4 } from 'node:net';
import { RepnetError } from './errors.js';

const MAGIC = Buffer.from([0x9e, 0x52, 0x65, 0x70, 0x4e, 0x65, 0x74]); // 0x9e "RepNet"
/** The forms of hello and answer, which do not change: they report versions. */
const FORM_HELLO = 0x01;
const FORM_ANSWER = 0x81;
/** The version of this format. 2: receivers skip record types from `Record.skipped` on. */
export const VERSION = 2;
/** The version of a peer that reports none. */
const FIRST_VERSION = 1;

export const HELLO_BYTES = 76;
export const ANSWER_BYTES = 24;
export const RECORD_HEADER_BYTES = 10;
/** Longest record payload (24-bit length). */
export const RECORD_MAX_BYTES = 0xffffff;
/** The most bytes of a stream: an offset has 48 bits. */
export const STREAM_MAX_BYTES = 2 ** 48 - 1;

/** The purpose of the connection on which a hello comes. */
export const Kind = {
  /** The second copy of a flow: records follow. */
  replica: 1,
  /** The winner of a RepSYN race: a plain byte stream follows. */
  raw: 2,
  /** Discovery only; the answer ends the connection. */
  probe: 3,
  // 4 was the first copy of a flow paired by token.
  /**
   * The server has to prove itself; a hello of kind raw may follow the answer on this connection.
   */
  prove: 5,
} as const;

export const HelloFlag = {
  /** The client pairs by token, which earlier versions did. */
  token: 1,
  /**
   * Records, or the bytes of a race's winner, follow without waiting for an answer. In earlier
   * versions also said of flows.
   */
  early: 2,
  // 4 was told by connections that are paired by token.
  /**
   * In a probe: the source is that of the flow's first connection, beside which the client asks.
   */
  beside: 8,
} as const;

export const AnswerFlag = {
  /** Other processes may accept on the same address: only the first connection starts a flow. */
  shared: 1,
  // 2 was told by servers that pair by token.
  /** The process has the first connection of the second on which it answers. */
  joined: 4,
} as const;

/** Why a hello was refused. */
export const Refusal = {
  none: 0,
  late: 1,
  unknown: 2,
  mismatch: 3,
  limit: 4,
  disabled: 5,
  /** A hello of a form, or of a kind, that this version does not know. */
  version: 6,
} as const;

export type RefusalReason = keyof typeof Refusal;

export interface Hello {
  kind: number;
  flags: number;
  /** Doubling threshold of the sender, bytes. */
  threshold: number;
  /** 16 random bytes: tell the flow from a later one of the same source port. */
  token: Buffer;
  sourceAddress: string;
  sourcePort: number;
  /** Address and first port as the client dialled them. */
  targetAddress: string;
  targetPort: number;
  /**
   * Milliseconds after its first connection within which the client may still send a hello of the
   * same flow.
   */
  patience: number;
  /** The latest version that the client knows; this one's unless said otherwise. */
  version?: number;
}

export interface Answer {
  refusal: number;
  flags: number;
  threshold: number;
  /** First port of the server, as clients dial it. */
  port: number;
  /** The version of both ends: the earlier of the two. */
  version: number;
  /** The server's life: 6 random bytes, drawn when it began to listen. Undefined: not reported. */
  life?: Buffer | undefined;
}

/** 'a.b.c.d' for IPv4 and IPv4-mapped IPv6; otherwise the canonical text without zone. */
export function canonicalAddress(address: string | undefined): string {
  if (address === undefined) return '';
  if (address.startsWith('::ffff:') && isIPv4(address.slice(7))) return address.slice(7);
  const zone = address.indexOf('%');
  return zone === -1 ? address : address.slice(0, zone);
}

function writeAddress(out: Buffer, at: number, address: string): void {
  if (isIPv4(address)) {
    out[at + 10] = out[at + 11] = 0xff;
    let value = 0;
    let index = at + 12;
    for (let i = 0; i < address.length; i++) {
      const c = address.charCodeAt(i);
      if (c === 46) {
        out[index++] = value;
        value = 0;
      } else value = value * 10 + c - 48;
    }
    out[index] = value;
    return;
  }
  const [head = '', tail] = address.split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  left.forEach((group, i) => {
    out.writeUInt16BE(Number.parseInt(group, 16) & 0xffff, at + 2 * i);
  });
  right.forEach((group, i) => {
    out.writeUInt16BE(Number.parseInt(group, 16) & 0xffff, at + 16 - 2 * (right.length - i));
  });
}

/** Returns 16 address bytes as text, alike on both ends. */
function readAddress(from: Buffer, at: number): string {
  for (let i = 0; i < 10; i++) if (from[at + i] !== 0) return from.toString('hex', at, at + 16);
  if (from[at + 10] === 0xff && from[at + 11] === 0xff)
    return `${from[at + 12]}.${from[at + 13]}.${from[at + 14]}.${from[at + 15]}`;
  return from.toString('hex', at, at + 16);
}

/** Returns the comparable form of an address: the result of `readAddress` at the other end. */
export function comparableAddress(address: string | undefined): string {
  const canonical = canonicalAddress(address);
  if (!canonical.includes(':')) return canonical; // IPv4, or none
  const bytes = Buffer.alloc(16);
  writeAddress(bytes, 0, canonical);
  return readAddress(bytes, 0);
}

/** CR LF CR LF. */
const LINE_ENDS = 0x0d0a0d0a;

export function encodeHello(hello: Hello): Buffer {
  const out = Buffer.allocUnsafe(HELLO_BYTES).fill(0);
  MAGIC.copy(out);
  out[7] = FORM_HELLO;
  out[8] = hello.kind;
  out[9] = hello.flags;
  out[10] = hello.version ?? VERSION;
  out.writeUInt32BE(Math.min(hello.threshold, 0xffffffff), 12);
  hello.token.copy(out, 16);
  writeAddress(out, 32, hello.sourceAddress);
  writeAddress(out, 48, hello.targetAddress);
  out.writeUInt16BE(hello.sourcePort, 64);
  out.writeUInt16BE(hello.targetPort, 66);
  out.writeUInt32BE(Math.min(hello.patience, 0xffffffff), 68);
  // Two line ends: a line-based service answers or hangs up at once instead of waiting for more.
  out.writeUInt32BE(LINE_ENDS, HELLO_BYTES - 4);
  return out;
}

/** Returns whether `chunk` may be the beginning of a hello, of this form or of a later one. */
export function looksLikeHello(chunk: Uint8Array): boolean {
  const n = Math.min(chunk.length, MAGIC.length);
  for (let i = 0; i < n; i++) if (chunk[i] !== MAGIC[i]) return false;
  const form = chunk[MAGIC.length] ?? FORM_HELLO;
  return form >= FORM_HELLO && form < 0x80;
}

/** Returns whether `chunk` is a hello of a later form, which is no shorter than this one. */
export function isLaterHello(chunk: Uint8Array): boolean {
  return chunk.length >= HELLO_BYTES && looksLikeHello(chunk) && chunk[MAGIC.length] !== FORM_HELLO;
}

/**
 * Returns the hello in `bytes`, at least HELLO_BYTES of them; undefined if they are no hello of
 * this form.
 */
export function decodeHello(bytes: Buffer): Hello | undefined {
  if (!looksLikeHello(bytes) || isLaterHello(bytes)) return undefined;
  if (bytes.readUInt32BE(HELLO_BYTES - 4) !== LINE_ENDS) return undefined;
  const kind = bytes[8] as number;
  if (kind < Kind.replica) return undefined;
  return {
    kind,
    flags: bytes[9] as number,
    threshold: bytes.readUInt32BE(12),
    token: Buffer.from(bytes.subarray(16, 32)),
    sourceAddress: readAddress(bytes, 32),
    targetAddress: readAddress(bytes, 48),
    sourcePort: bytes.readUInt16BE(64),
    targetPort: bytes.readUInt16BE(66),
    patience: bytes.readUInt32BE(68),
    version: bytes[10] || FIRST_VERSION,
  };
}

export function encodeAnswer(answer: Answer): Buffer {
  const out = Buffer.allocUnsafe(ANSWER_BYTES).fill(0);
  MAGIC.copy(out);
  out[7] = FORM_ANSWER;
  out[8] = answer.refusal;
  out[9] = answer.flags;
  out[10] = answer.version;
  out.writeUInt32BE(Math.min(answer.threshold, 0xffffffff), 12);
  out.writeUInt16BE(answer.port, 16);
  answer.life?.copy(out, 18);
  return out;
}

export function decodeAnswer(bytes: Buffer): Answer | undefined {
  if (bytes.compare(MAGIC, 0, 7, 0, 7) !== 0 || bytes[7] !== FORM_ANSWER) return undefined;
  return {
    refusal: bytes[8] as number,
    flags: bytes[9] as number,
    threshold: bytes.readUInt32BE(12),
    port: bytes.readUInt16BE(16),
    version: bytes[10] || FIRST_VERSION,
    ...(bytes.readUIntBE(18, 6) === 0 ? {} : { life: Buffer.from(bytes.subarray(18, 24)) }),
  };
}

/** Returns whether `chunk` may be the beginning of an answer. */
export function mayBeAnswer(chunk: Buffer): boolean {
  const whole = Buffer.alloc(ANSWER_BYTES);
  chunk.copy(whole);
  return chunk.length < 8 || decodeAnswer(whole) !== undefined;
}

/** Record types. `offset` counts application bytes of that direction from 0. */
export const Record = {
  /** `length` bytes of the stream, the first of them at `offset`. */
  data: 1,
  /**
   * Receiver to sender: double no more of this message to this copy, I have everything below
   * `offset`.
   */
  stop: 2,
  /** Receiver to sender: your first copy was over after `offset` bytes; is that the end? */
  query: 3,
  /** The stream ends at `offset` bytes in total. */
  end: 4,
  /** The application reset the flow. */
  reset: 5,
  /**
   * Receiver to sender: I have everything below `offset`; the first copy brought `extra` bytes of
   * it.
   */
  report: 6,
  /** The sender gave the first copy up; everything below `offset` was sent on either copy. */
  alone: 7,
  /** Receivers of version 2 or later skip unknown types from this one on. */
  skipped: 192,
} as const;

export function dataHeader(
  offset: number,
  length: number,
  out: Buffer = Buffer.allocUnsafe(RECORD_HEADER_BYTES),
): Buffer {
  out.writeUInt32BE(((Record.data << 24) | length) >>> 0, 0);
  out.writeUIntBE(offset, 4, 6);
  return out;
}

export function controlRecord(type: number, offset: number, extra = -1): Buffer {
  const payload = extra >= 0 ? 6 : 0;
  const out = Buffer.allocUnsafe(RECORD_HEADER_BYTES + payload);
  out.writeUInt32BE(((type << 24) | payload) >>> 0, 0);
  out.writeUIntBE(offset, 4, 6);
  if (payload > 0) out.writeUIntBE(extra, RECORD_HEADER_BYTES, 6);
  return out;
}

export interface RecordSink {
  onData(offset: number, bytes: Buffer): void;
  onControl(type: number, offset: number, extra: number): void;
}

/**
 * Splits a byte stream into records. Data is passed on as it comes, before its record is whole:
 * nothing is held back or stored.
 */
export class RecordParser {
  #partial: Buffer | undefined;
  #offset = 0;
  #left = 0;
  /** Bytes of an unknown record that are still to be skipped. */
  #skip = 0;

  /**
   * Hands the records in `chunk` to `sink`. @throws RepnetError ERR_REPNET_PROTOCOL on a malformed
   * record.
   */
  feed(chunk: Buffer, sink: RecordSink): void {
    let at = 0;
    if (this.#partial !== undefined) {
      chunk = Buffer.concat([this.#partial, chunk]);
      this.#partial = undefined;
    }
    const size = chunk.length;
    while (at < size) {
      if (this.#left > 0) {
        const n = Math.min(this.#left, size - at);
        const offset = this.#offset;
        this.#left -= n;
        this.#offset += n;
        sink.onData(offset, at === 0 && n === size ? chunk : chunk.subarray(at, at + n));
        at += n;
        continue;
      }
      if (this.#skip > 0) {
        const n = Math.min(this.#skip, size - at);
        this.#skip -= n;
        at += n;
        continue;
      }
      if (size - at < RECORD_HEADER_BYTES) break;
      const word = chunk.readUInt32BE(at);
      const type = word >>> 24;
      const length = word & RECORD_MAX_BYTES;
      const offset = chunk.readUIntBE(at + 4, 6);
      if (type === Record.data) {
        if (length === 0) throw malformed('an empty data record');
        if (offset + length > STREAM_MAX_BYTES) throw malformed('data beyond the longest stream');
        this.#offset = offset;
        this.#left = length;
        at += RECORD_HEADER_BYTES;
        continue;
      }
      if (type >= Record.skipped) {
        this.#skip = length;
        at += RECORD_HEADER_BYTES;
        continue;
      }
      if (type > Record.alone || type === 0 || length !== (type === Record.report ? 6 : 0))
        throw malformed(`record type ${type} of ${length} bytes`);
      if (size - at < RECORD_HEADER_BYTES + length) break;
      sink.onControl(type, offset, length > 0 ? chunk.readUIntBE(at + RECORD_HEADER_BYTES, 6) : -1);
      at += RECORD_HEADER_BYTES + length;
    }
    if (at < size) this.#partial = at === 0 ? chunk : Buffer.from(chunk.subarray(at));
  }

  /** True while a data record has been announced and not wholly received. */
  get midRecord(): boolean {
    return this.#left > 0;
  }

  /** First offset that the announced records do not cover. */
  get announced(): number {
    return this.#offset + this.#left;
  }
}

function malformed(what: string): RepnetError {
  return new RepnetError('ERR_REPNET_PROTOCOL', `The peer sent ${what} on a replica connection`);
}

/** Appends the bytes as records of at most the greatest length. */
export function pushRecords(parts: Buffer[], offset: number, bytes: Buffer): void {
  for (let at = 0; at < bytes.length; at += RECORD_MAX_BYTES) {
    const piece = bytes.length <= RECORD_MAX_BYTES ? bytes : bytes.subarray(at, at + RECORD_MAX_BYTES);
    parts.push(dataHeader(offset + at, piece.length), piece);
  }
}

/** Returns the records of a copy of the bytes. */
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

/** Returns the payloads of the records, without copying. */
export function payloads(records: readonly Buffer[]): Buffer[] {
  return records.map((record) => record.subarray(RECORD_HEADER_BYTES));
}
