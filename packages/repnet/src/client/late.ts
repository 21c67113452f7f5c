/**
 * Connections that come when the application has closed the flow. What they bring is dropped:
 * nobody reads it.
 */

import { Buffer } from 'node:buffer';
import type { Leg, LegSink } from '../flow/leg.js';
import { endLinger, type Linger, startLinger } from '../flow/waits.js';
import type { Archive } from '../memory/archive.js';
import { ANSWER_BYTES, controlRecord, pushRecords, Record } from '../wire.js';

/**
 * A first connection that is established after the close: carries what the application had written,
 * and the end, should the second fail under them.
 */
export class LateFirst implements LegSink {
  readonly #leg: Leg;
  #linger: Linger | undefined;

  constructor(leg: Leg, archive: Archive) {
    this.#leg = leg.unref();
    leg.sink = this;
    this.#linger = startLinger(() => this.close());
    leg.send(archive.parts, (error) => {
      archive.drop();
      if (error) leg.destroy(error);
    });
    leg.finish(() => {});
    leg.resumeReading();
  }

  legData(): boolean {
    return true;
  }
  legFin(): void {
    this.close();
  }
  legLost(): void {
    this.#over();
  }

  /** The second has brought everything, or the server has ended this one. */
  close(): void {
    this.#over();
    if (!this.#leg.lost) this.#leg.close();
  }

  #over(): void {
    if (this.#linger !== undefined) endLinger(this.#linger);
    this.#linger = undefined;
  }
}

/**
 * A second connection that the server had not answered at the close. When the server has proved
 * itself it is sent what the application had written, as far as that was kept, and where the stream
 * ends, should the first connection fail under the last bytes.
 */
export class LateSecond implements LegSink {
  readonly #leg: Leg;
  readonly #archive: Archive | undefined;
  readonly #total: number;
  readonly #isProof: (answer: Buffer) => boolean;
  #seen: Buffer | undefined = Buffer.alloc(0);
  #timer: NodeJS.Timeout | undefined;

  /**
   * `total`: bytes that the application has written; `archive`: all of them, if there is one. A
   * server that has not ended the connection after `patience` ms has forgotten the flow, or is
   * about to. The connection is reset then, since the kernel would go on sending what is closed in
   * order.
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

/**
 * The archive for a first connection that is still to come when the application closes the flow.
 */
export class LateFirstSlot {
  #archive: Archive | undefined;
  #connection: Leg | LateFirst | undefined;

  /** `archive`: all that the application has written. */
  keep(archive: Archive): void {
    this.#archive = archive;
  }

  /**
   * The first connection is established. `inTime`: a server takes it for the flow's own, and not
   * for a new one's, as it does for as long as the client would have waited for it.
   */
  open(leg: Leg, inTime: boolean): void {
    const archive = this.#archive;
    this.#archive = undefined;
    if (archive !== undefined && inTime) {
      this.#connection = new LateFirst(leg, archive);
      return;
    }
    archive?.drop();
    this.#connection = leg.unref();
  }

  /** The first connection is not needed any more. */
  abandon(): void {
    this.#connection?.close();
    this.#archive?.drop();
    this.#archive = undefined;
  }
}
