/**
 * The rest of a flow that the application has closed while one of its connections was still to
 * come. That connection gets all that was written, and the end, should the other have failed under
 * the last bytes. Bytes that it brings are read and dropped.
 */

import type { Leg, LegSink } from '../flow/leg.js';
import { endLinger, type Linger, startLinger } from '../flow/waits.js';
import type { Archive } from '../memory/archive.js';
import * as budget from '../memory/budget.js';
import { counters } from '../stats.js';
import { Record as Control, controlRecord, pushRecords, RecordParser, type RecordSink } from '../wire.js';

export interface Closed {
  /** All that was written; undefined if nothing was. */
  archive: Archive | undefined;
  /** Bytes written in total. */
  total: number;
  /**
   * Bytes that the application had read at a bare FIN, which it took for the end; undefined if the
   * end was declared, or the application did not wait for it.
   */
  endedAt: number | undefined;
}

export class Remains implements LegSink, RecordSink {
  readonly #closed: Closed;
  #leg: Leg | undefined;
  #parser: RecordParser | undefined;
  #linger: Linger | undefined;
  #evicted = false;
  /** Our end is sent. */
  #ended = false;
  #finishing = false;

  constructor(closed: Closed) {
    this.#closed = closed;
    closed.archive?.retire(() => {
      this.#evicted = true;
    });
  }

  /** Returns whether the bytes written are still there. */
  get joinable(): boolean {
    return !this.#evicted;
  }

  /**
   * Serves the late connection. `answer` is undefined for a first connection; `rest` came with the
   * hello of a second.
   */
  serve(leg: Leg, answer: Buffer | undefined, rest: Buffer | undefined): void {
    const { archive, total } = this.#closed;
    archive?.reinstate();
    this.#leg = leg;
    leg.sink = this;
    leg.unref();
    // Beyond the budget a second connection gets the total alone, so that its client misses the
    // bytes; a first is reset.
    const affordable = budget.takeBytes(total);
    if (!affordable && answer === undefined) {
      this.#over((plain) => plain.abort());
      return;
    }
    counters.lateServed++;
    this.#linger = startLinger(() => this.#over((last) => last.close()));
    const written = affordable ? (archive?.parts ?? []) : [];
    const parts: Buffer[] = [];
    if (answer === undefined) parts.push(...written);
    else {
      this.#parser = new RecordParser();
      parts.push(answer);
      let offset = 0;
      for (const bytes of written) {
        pushRecords(parts, offset, bytes);
        offset += bytes.length;
      }
      // A bare FIN may have been the fault of that connection alone. Then the application has
      // answered half a request, and its end does not count: the client says on this connection
      // where its stream ends.
      if (this.#closed.endedAt === undefined) this.#declareEnd(parts);
    }
    if (parts.length > 0)
      leg.send(parts, (error) => {
        archive?.drop();
        if (error) leg.destroy(error);
      });
    if (answer === undefined) this.#finish();
    if (rest !== undefined && !leg.lost) leg.receive(rest);
    leg.resumeReading();
  }

  /** No connection has come in time. */
  waitOver(): void {
    if (this.#leg === undefined) this.#closed.archive?.drop();
  }

  #declareEnd(parts: Buffer[]): void {
    if (this.#ended) return;
    this.#ended = true;
    parts.push(controlRecord(Control.end, this.#closed.total));
  }

  #send(parts: Buffer[]): void {
    if (parts.length > 0) this.#leg?.send(parts, () => {});
  }

  #over(end: (leg: Leg) => void): void {
    const leg = this.#leg;
    if (leg === undefined) return;
    this.#leg = undefined;
    if (this.#linger !== undefined) endLinger(this.#linger);
    this.#linger = undefined;
    this.#closed.archive?.drop();
    end(leg);
  }

  /** The client's stream reaches to `offset`. */
  #reaches(offset: number): void {
    const { endedAt } = this.#closed;
    if (endedAt === undefined || offset <= endedAt || this.#ended) return;
    this.#ended = true;
    this.#send([controlRecord(Control.reset, 0)]);
    this.#finish();
  }

  legData(leg: Leg, chunk: Buffer): boolean {
    try {
      this.#parser?.feed(chunk, this);
    } catch (error) {
      leg.destroy(error as Error);
    }
    return true;
  }

  onData(offset: number, bytes: Buffer): void {
    this.#reaches(offset + bytes.length);
  }

  onControl(type: number, offset: number): void {
    if (type === Control.end || type === Control.alone) this.#reaches(offset);
    if (type !== Control.end && type !== Control.query) return;
    const parts: Buffer[] = [];
    this.#declareEnd(parts);
    this.#send(parts);
    if (type === Control.end) this.#finish();
  }

  /**
   * Sends FIN, and reads on until the client ends the connection: closing with bytes unread would
   * take ours with them.
   */
  #finish(): void {
    const leg = this.#leg;
    if (leg === undefined || this.#finishing) return;
    this.#finishing = true;
    leg.finish(() => {});
  }

  legFin(): void {
    this.#over((leg) => leg.close());
  }
  legLost(): void {
    this.#over(() => {});
  }
}
