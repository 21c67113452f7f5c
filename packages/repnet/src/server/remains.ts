/**
 * What a server keeps of a flow that the application has closed while one of its connections had
 * still to come. Should the connection that there was fail under the last bytes, the one that comes
 * late carries them: it gets all that was written, and the end; what it brings is read to its end
 * and dropped.
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
   * Bytes the application had read when a bare FIN told it that there were no more; undefined if it
   * was told by a declared end, or has not waited for one.
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

  /** False: what was written is no longer there. */
  get joinable(): boolean {
    return !this.#evicted;
  }

  /** The late connection has come. `answer`: it is a framed one; `rest` came with its hello. */
  serve(leg: Leg, answer: Buffer | undefined, rest: Buffer | undefined): void {
    const { archive, total } = this.#closed;
    archive?.reinstate();
    this.#leg = leg;
    leg.sink = this;
    leg.unref();
    // Beyond the budget it is told how much there was, so that what is missing is missed, or cut
    // off if it cannot be told.
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
      // A bare FIN may have been that connection's fault alone: then the application has answered
      // half a question, and must not be taken at its word. The client says on this one where its
      // stream ends.
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

  /** Nobody has come in time. */
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

  /** The client's stream reaches this far. */
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
   * FIN; and read on until the client ends the connection, since closing on its unread bytes would
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
