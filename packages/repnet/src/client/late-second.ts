/**
 * The second connection of a flow that its application has closed before the server had answered
 * on it. When the server has proved itself it is sent what the application had written, as far as
 * that was kept, and where the stream ends, should the first connection fail under the last bytes.
 * Bytes from the server are dropped: nobody reads them any more.
 */
import { Buffer } from 'node:buffer';
import type { Leg, LegSink } from '../flow/leg.js';
import { pushRecords } from '../flow/records.js';
import type { Archive } from '../memory/archive.js';
import { ANSWER_BYTES, controlRecord, Record } from '../wire.js';

export class LateSecond implements LegSink {
  readonly #leg: Leg;
  readonly #archive: Archive | undefined;
  readonly #total: number;
  readonly #isProof: (answer: Buffer) => boolean;
  #seen: Buffer | undefined = Buffer.alloc(0);
  #timer: NodeJS.Timeout | undefined;

  /**
   * `total`: bytes that the application has written; `archive`: all of them, if there is one. A
   * server that has not ended the connection after `patience` ms has forgotten the flow, or is about
   * to: the connection is reset, since the kernel would go on sending what is closed in order.
   */
  constructor(
    leg: Leg,
    archive: Archive | undefined,
    total: number,
    patience: number,
    isProof: (answer: Buffer) => boolean,
  ) {
    this.#leg = leg.unref();
    this.#archive = archive;
    this.#total = total;
    this.#isProof = isProof;
    leg.sink = this;
    this.#timer = setTimeout(() => this.abandon(), patience).unref();
    leg.resumeReading();
  }

  legData(_leg: Leg, chunk: Buffer): boolean {
    if (this.#seen === undefined) return true;
    this.#seen = Buffer.concat([this.#seen, chunk]);
    if (this.#seen.length < ANSWER_BYTES) return true;
    const answer = this.#seen;
    this.#seen = undefined;
    if (this.#isProof(answer)) this.#catchUp();
    else this.abandon();
    return true;
  }

  #catchUp(): void {
    const parts: Buffer[] = [];
    let offset = 0;
    for (const bytes of this.#archive?.parts ?? []) {
      pushRecords(parts, offset, bytes);
      offset += bytes.length;
    }
    parts.push(controlRecord(Record.end, this.#total));
    this.#leg.send(parts, (error) => {
      if (error) this.#leg.destroy(error);
    });
    this.#leg.finish(() => {});
  }

  legFin(): void {
    this.#over();
    this.#leg.close();
  }
  legLost(): void {
    this.#over();
  }

  abandon(): void {
    this.#over();
    if (!this.#leg.lost) this.#leg.abort();
  }

  #over(): void {
    clearTimeout(this.#timer);
    this.#archive?.drop();
  }
}
