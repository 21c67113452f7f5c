/**
 * The WebAssembly module: takes texts, returns answers. Works in a browser's worker and in Node.
 */

/** The module's exports (see crates/tailcut-wasm). */
interface Exports {
  memory: WebAssembly.Memory;
  input(length: number): number;
  answer_at(): number;
  answer_length(): number;
  report_panics(): void;
  describe(): number;
  plan(): number;
  network(): number;
  run(frames: number): number;
}

/** An error in an experiment; `rendered` is the text to show. */
export interface Wrong {
  message: string;
  rendered: string;
  line?: number;
}

/** Thrown if the module answers with errors or fails. */
export class Refused extends Error {
  readonly errors: readonly Wrong[];

  constructor(errors: readonly Wrong[]) {
    super(errors.map((error) => error.rendered).join('\n\n'));
    this.errors = errors;
  }
}

/** A column of a table. */
export type Column = {
  kind: string;
  /** The cells; integers of 64 bits are `bigint`. */
  cells: BigUint64Array | BigInt64Array | Uint32Array | Uint8Array | Float64Array;
  /** A flag per row: 1 if the row has a value; null if every row has one. */
  valid: Uint8Array | null;
  /** The words of a `label`, which its cells index. */
  categories: string[] | null;
};

/** The results of a run. */
export interface Result {
  tables: Record<string, Record<string, Column>>;
  counters: Record<string, number>;
  facts: Record<string, number>;
  series: {
    name: string;
    flow: number | null;
    copy: number | null;
    time_ns: number[];
    value: number[];
    truncated: boolean;
  }[];
}

/** An instance of the module. */
export class Engine {
  private readonly exports: Exports;
  private panic = '';
  private onFrame: (text: string) => void = () => {};

  /** Creates an instance from the bytes of the module or from the compiled module. */
  static async start(module: WebAssembly.Module | Uint8Array<ArrayBuffer>): Promise<Engine> {
    const compiled = module instanceof WebAssembly.Module ? module : await WebAssembly.compile(module);
    return new Engine(compiled);
  }

  private constructor(module: WebAssembly.Module) {
    const page = {
      frame: (at: number, length: number) => this.onFrame(this.text(at, length)),
      panicked: (at: number, length: number) => {
        this.panic = this.text(at, length);
      },
    };
    const instance = new WebAssembly.Instance(module, { page });
    this.exports = instance.exports as unknown as Exports;
    this.exports.report_panics();
  }

  /** Returns every component and the version, as JSON. */
  describe(): string {
    return new TextDecoder().decode(this.call(this.exports.describe, ''));
  }

  /** Returns the plan of an experiment file, as JSON. */
  plan(name: string, text: string): string {
    return new TextDecoder().decode(this.call(this.exports.plan, JSON.stringify({ name, text })));
  }

  /** Returns the network of a run of a plan, as JSON. */
  network(run: string): string {
    return new TextDecoder().decode(this.call(this.exports.network, run));
  }

  /** Carries out a run of a plan. Calls `onFrame` with frames of it, as JSON, during the run. */
  run(run: string, frames: number, onFrame: (text: string) => void): Uint8Array<ArrayBuffer> {
    this.onFrame = onFrame;
    return this.call(() => this.exports.run(frames), run);
  }

  private call(call: () => number, text: string): Uint8Array<ArrayBuffer> {
    const bytes = new TextEncoder().encode(text);
    const at = this.exports.input(bytes.length);
    new Uint8Array(this.exports.memory.buffer, at, bytes.length).set(bytes);
    let code: number;
    try {
      code = call();
    } catch (error) {
      const message = this.panic || String(error);
      throw new Refused([{ message, rendered: `The simulator failed: ${message}` }]);
    }
    const length = this.exports.answer_length();
    const answer = new Uint8Array(this.exports.memory.buffer, this.exports.answer_at(), length).slice();
    if (code !== 0) {
      throw new Refused(JSON.parse(new TextDecoder().decode(answer)).errors);
    }
    return answer;
  }

  private text(at: number, length: number): string {
    return new TextDecoder().decode(new Uint8Array(this.exports.memory.buffer, at, length));
  }
}

const ARRAYS = {
  u64: BigUint64Array,
  i64: BigInt64Array,
  u32: Uint32Array,
  u8: Uint8Array,
  f64: Float64Array,
  bool: Uint8Array,
  label: Uint8Array,
} as const;

/** Decodes the answer to a run. */
export function unpack(answer: Uint8Array<ArrayBuffer>): Result {
  const length = new DataView(answer.buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(answer.subarray(4, 4 + length)));
  const from = 4 + length;
  for (const table of Object.keys(header.tables)) {
    const columns: Record<string, Column> = {};
    for (const { name, kind, rows, at, valid, categories } of header.tables[table]) {
      const cells = new ARRAYS[kind as keyof typeof ARRAYS](answer.buffer, from + at, rows);
      const known = valid === null ? null : new Uint8Array(answer.buffer, from + valid, rows);
      columns[name] = { kind, cells, valid: known, categories };
    }
    header.tables[table] = columns;
  }
  return header;
}
