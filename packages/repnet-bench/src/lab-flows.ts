/**
 * The flows that a host of the kernel lab is to receive: identifies the flow of a connection, and
 * checks every byte.
 */

/** A flow, as the host at either end of it is told. */
export interface HostFlow {
  readonly index: number;
  /** The other host's address. */
  readonly peer: string;
  readonly bytes: number;
  /** The port that it comes from; 0 leaves the choice to the kernel. */
  readonly port: number;
  /** Where in the payload it begins. */
  readonly place: number;
}

/** A string of this length occurs at one place of the payload only. */
const TELLING = 8;

/** The bytes of all flows: each begins at a place of its own, and goes around. */
export class LabPayload {
  readonly #period: number;
  /** Twice, so that any period of it is in one piece. */
  readonly #bytes: Buffer;

  constructor(hex: string) {
    const period = Buffer.from(hex, 'hex');
    this.#period = period.length;
    this.#bytes = Buffer.concat([period, period]);
  }

  /** As many of a flow's bytes from `offset` on as are in one piece, `most` at most. */
  part(place: number, offset: number, most: number): Buffer {
    const from = (place + offset) % this.#period;
    return this.#bytes.subarray(from, from + Math.min(this.#period, most));
  }

  /**
   * Returns the offset of the first wrong byte of the flow in `found`, which begins at `offset`;
   * undefined if all are right.
   */
  mismatch(place: number, offset: number, found: Buffer): number | undefined {
    for (let done = 0; done < found.length; ) {
      const from = (place + offset + done) % this.#period;
      const end = Math.min(found.length, done + this.#period);
      if (found.compare(this.#bytes, from, from + end - done, done, end) !== 0) {
        while (found[done] === this.#bytes[(place + offset + done) % this.#period]) done++;
        return offset + done;
      }
      done = end;
    }
    return undefined;
  }
}

/**
 * Flows of which nothing has come yet. One is known by who sends it and by its first bytes, or all
 * of them if it has no more, and not by the port that it comes from, which the kernel may have
 * chosen.
 */
export class Expected {
  readonly #payload: LabPayload;
  readonly #flows = new Map<string, HostFlow>();

  constructor(payload: LabPayload, flows: readonly HostFlow[]) {
    this.#payload = payload;
    for (const flow of flows) this.add(flow);
  }

  add(flow: HostFlow): void {
    const key = keyOf(flow.peer, this.#payload.part(flow.place, 0, Math.min(flow.bytes, TELLING)));
    const other = this.#flows.get(key);
    if (other !== undefined) throw new Error(`flows ${other.index} and ${flow.index} begin alike`);
    this.#flows.set(key, flow);
  }

  /** The flow from there that begins with these bytes, or is no more than these; it comes once. */
  take(from: string, head: Buffer): HostFlow | undefined {
    const key = keyOf(from, head.subarray(0, TELLING));
    const flow = this.#flows.get(key);
    this.#flows.delete(key);
    return flow;
  }
}

function keyOf(from: string, head: Buffer): string {
  return `${from} ${head.toString('latin1')}`;
}

/** A connection that has come in. What is wrong with what it brings is thrown. */
export class Arrival {
  readonly #payload: LabPayload;
  readonly #expected: Expected;
  readonly #from: string;
  readonly #port: number;
  /** Bytes that arrived before the flow was identified. */
  #head: Buffer = Buffer.alloc(0);
  /** The flow, once it is identified. */
  flow: HostFlow | undefined;
  bytes = 0;

  constructor(payload: LabPayload, expected: Expected, from: string, port: number) {
    this.#payload = payload;
    this.#expected = expected;
    this.#from = from;
    this.#port = port;
  }

  /** Whether the whole flow has arrived. */
  get complete(): boolean {
    return this.bytes === this.flow?.bytes;
  }

  /** More bytes have come. */
  read(chunk: Buffer): void {
    const before = this.bytes;
    this.bytes += chunk.length;
    if (this.flow !== undefined) return this.#check(this.flow, before, chunk);
    this.#head = this.#head.length === 0 ? chunk : Buffer.concat([this.#head, chunk]);
    if (this.bytes >= TELLING) this.#recognise();
  }

  /** Nothing more comes. */
  end(): void {
    // A connection that lost its race before it brought anything.
    if (this.bytes === 0) return;
    const flow = this.flow ?? this.#recognise();
    if (!this.complete)
      throw new Error(`${naming(flow)}: it ended after ${this.bytes} of ${flow.bytes} bytes`);
  }

  #recognise(): HostFlow {
    const flow = this.#expected.take(this.#from, this.#head);
    const from = `${this.#from}:${this.#port}`;
    if (flow === undefined) throw new Error(`${this.bytes} bytes from ${from} that no flow is known for`);
    if (flow.port !== 0 && flow.port !== this.#port)
      throw new Error(`${naming(flow)}: it came from ${from}, and not from port ${flow.port}`);
    this.flow = flow;
    this.#check(flow, 0, this.#head);
    this.#head = Buffer.alloc(0);
    return flow;
  }

  #check(flow: HostFlow, offset: number, found: Buffer): void {
    const at = this.#payload.mismatch(flow.place, offset, found);
    if (at !== undefined) throw new Error(`${naming(flow)}: byte ${at} is not the one that was sent`);
    if (this.bytes > flow.bytes) throw new Error(`${naming(flow)}: more bytes than were sent`);
  }
}

function naming(flow: HostFlow): string {
  return `flow ${flow.index}: its receiver`;
}
