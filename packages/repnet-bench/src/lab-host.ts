/**
 * `repnet-bench lab`: a host of Tailcut's kernel lab. What it is to be comes in one line of JSON on
 * standard input, then a line for whatever it is to do; it says on standard output that it is
 * ready, then a line for each thing that happens, and at the end what it has measured. Whoever told
 * it keeps the time and knows which flows wait for others.
 */
import * as net from 'node:net';
import { defaults } from 'repnet';
import type { Dialer } from './client.js';
import { createDialer, listenReplicated } from './dial.js';
import { Arrival, Expected, type HostFlow, LabPayload } from './lab-flows.js';
import { version } from './version.js';

/** The first message to a host: its part of the run. */
export interface HostTask {
  readonly address: string;
  readonly port: number;
  /** All hosts of a run are served alike: `net` by plain node:net, the others by repnet. */
  readonly mode: 'net' | 'syn' | 'flow';
  /** Longer flows are not replicated. */
  readonly threshold: number;
  /** Milliseconds by which the second copy starts later. */
  readonly copyDelay: number;
  /** One period of the bytes of all flows, in hexadecimal. */
  readonly payload: string;
  readonly flows: readonly HostFlow[];
  /** The flows that other hosts send to it. */
  readonly expected: readonly HostFlow[];
}

/** A sender's record of a flow. Times are of the monotonic clock, in ns. */
interface Sent {
  readonly index: number;
  readonly opened_ns: number;
  established_ns: number | null;
  /** When the receiver's end of the connection arrived: it has everything then. */
  acknowledged_ns: number | null;
}

/** A receiver's record of a connection. */
interface Taken {
  readonly arrival: Arrival;
  complete_ns: number | null;
  in_arrivals: number | null;
}

/**
 * Milliseconds that a flow waits for its second connection: more than the second that the other end
 * gives it.
 */
const WAIT_TIMEOUT = 1200;
/**
 * Whoever keeps the time is told of connections that bring more, and of no flow that is replicated.
 */
const LONG = 65_536;
/** Flows that a host carries to itself before it is ready. */
const WARM_UPS = 30;

/** Time before a flow is due at which the host wakes. */
const AWAKE_MS = 0.15;
const NOBODY_WAKES = new Int32Array(new SharedArrayBuffer(4));

const now = (): number => Number(process.hrtime.bigint());

export class LabHost {
  readonly #task: HostTask;
  readonly #tell: (line: string) => void;
  readonly #payload: LabPayload;
  readonly #expected: Expected;
  readonly #dialer: Dialer;
  readonly #sent: Sent[] = [];
  readonly #taken: Taken[] = [];
  readonly #wrong: string[] = [];
  /** Longer flows are long. */
  readonly #long: number;
  #noted = false;
  #warm = false;

  /**
   * `tell`: `r`, which flow and since when, when all of a flow has come; `a`, likewise, when the
   * sender of one knows that; `l`, an address and a port when the connection from there brings a
   * long flow, which need not be read packet by packet; `w` when something is wrong.
   */
  constructor(task: HostTask, tell: (line: string) => void) {
    const { mode, port, threshold, copyDelay, flows } = task;
    this.#task = task;
    this.#tell = tell;
    this.#long = Math.max(LONG, threshold);
    this.#payload = new LabPayload(task.payload);
    this.#expected = new Expected(this.#payload, task.expected);
    this.#dialer = createDialer({
      mode,
      servers: [...flows.map((flow) => flow.peer), task.address].map((host) => ({ host, port })),
      threshold,
      replicaPort: port + 1,
      copyDelay,
      peer: 'repnet',
    });
  }

  /** Listens, and resolves when flows may come. */
  async listen(): Promise<void> {
    const { mode, address, port } = this.#task;
    defaults.waitTimeout = WAIT_TIMEOUT;
    const server = mode === 'net' ? net.createServer({ noDelay: true }) : listenReplicated({ noDelay: true });
    server.on('connection', (socket) => this.#take(socket));
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen({ host: address, port }, resolve);
    });
    // A server that has just begun lets no flow start with its second connection, in case a process
    // before it has the first.
    if (mode !== 'net') await new Promise((resolve) => setTimeout(resolve, 1.5 * WAIT_TIMEOUT));
  }

  #event(line: string): void {
    if (this.#warm) this.#tell(line);
  }

  #fail(what: string): void {
    this.#wrong.push(what);
    this.#event('w');
  }

  /**
   * Carries a few flows to itself, which leave its host by no link, so that the first of the run
   * finds everything compiled.
   */
  async warmUp(): Promise<void> {
    const { address, flows } = this.#task;
    for (let round = 0; round < WARM_UPS; round++) {
      // RepFlow finds ports of its own, as it does where the caller has none.
      const flow = { index: 0, peer: address, bytes: 1000, port: 0, place: 0 };
      this.#expected.add(flow);
      const socket = this.#open(flow, flows.length);
      await new Promise((resolve) => socket.once('close', resolve));
    }
    if (this.#wrong.length > 0) throw new Error(this.#wrong.join('; '));
    this.#sent.length = 0;
    this.#taken.length = 0;
    // Garbage of the start must not be collected while flows are due. Twice, because survivors of
    // the first collection are still copied.
    for (let time = 0; time < 2; time++) globalThis.gc?.();
    this.#warm = true;
  }

  /**
   * Begins the flow at this place of the task's list, and not before it is due, which is told a
   * little ahead: a process that is awake by then is not late. Until just before that it sleeps,
   * and leaves its processor to others.
   */
  begin(at: number, due_ns: bigint): void {
    const early_ms = Number(due_ns - process.hrtime.bigint()) / 1e6;
    if (early_ms > AWAKE_MS) Atomics.wait(NOBODY_WAKES, 0, 0, early_ms - AWAKE_MS);
    while (process.hrtime.bigint() < due_ns);
    this.#open(this.#task.flows[at]!, at);
  }

  #open(flow: HostFlow, server: number): net.Socket {
    const sent: Sent = { index: flow.index, opened_ns: now(), established_ns: null, acknowledged_ns: null };
    this.#sent.push(sent);
    const { port, bytes } = flow;
    const socket = this.#dialer.dial(server, this.#dialer.replicates(bytes), port === 0 ? undefined : port);
    socket.once('connect', () => {
      sent.established_ns = now();
    });
    socket.on('error', (error: NodeJS.ErrnoException) => {
      // A SYN that was sent as often as the plan says: the flow does not finish.
      if (error.code === 'ETIMEDOUT') return;
      const after = Math.round((now() - sent.opened_ns) / 1e6);
      const how = `${error.message} after ${after} ms and ${socket.bytesWritten} bytes, by ${this.#task.mode}`;
      this.#fail(`flow ${flow.index}: its sender: ${how}`);
    });
    socket.on('data', () => this.#fail(`flow ${flow.index}: the receiver has sent something`));
    socket.once('end', () => {
      sent.acknowledged_ns = now();
      this.#event(`a ${flow.index} ${sent.acknowledged_ns}`);
    });
    this.#pump(socket, flow);
    return socket;
  }

  #pump(socket: net.Socket, { bytes, place }: HostFlow): void {
    let offset = 0;
    const pump = (): void => {
      while (offset < bytes) {
        const part = this.#payload.part(place, offset, bytes - offset);
        offset += part.length;
        if (offset === bytes) socket.off('drain', pump).end(part);
        else if (!socket.write(part)) return; // goes on at 'drain'
      }
    };
    socket.on('drain', pump);
    pump();
  }

  #take(socket: net.Socket): void {
    const [from, port] = [socket.remoteAddress ?? '', socket.remotePort ?? 0];
    const arrival = new Arrival(this.#payload, this.#expected, from, port);
    const taken: Taken = { arrival, complete_ns: null, in_arrivals: this.#noted ? 0 : null };
    this.#taken.push(taken);
    let spoilt = false;
    let last_ns = 0;
    const step = (read: () => void): void => {
      if (spoilt) return;
      try {
        read();
      } catch (error) {
        spoilt = true;
        return this.#fail((error as Error).message);
      }
      if (!arrival.complete || taken.complete_ns !== null) return;
      taken.complete_ns = last_ns;
      this.#event(`r ${arrival.flow!.index} ${last_ns}`);
      // By this its sender knows that everything has arrived.
      socket.end();
    };
    socket.on('data', (chunk: Buffer) => {
      last_ns = now();
      const known = arrival.flow !== undefined;
      step(() => arrival.read(chunk));
      if (!known && (arrival.flow?.bytes ?? 0) > this.#long) this.#event(`l ${from} ${port}`);
    });
    socket.once('end', () => step(() => arrival.end()));
    socket.on('error', (error: NodeJS.ErrnoException) => {
      // RepSYN may give its first connection up in the moment in which that is established: it
      // carries no flow.
      const isGivenUp = arrival.bytes === 0 && error.code === 'ECONNRESET';
      if (!isGivenUp) this.#fail(`from ${from}:${port}: ${error.message}`);
    });
  }

  /** The arrivals have ended. */
  note(): void {
    this.#noted = true;
    for (const taken of this.#taken) taken.in_arrivals ??= taken.arrival.bytes;
  }

  /** Returns the report of the run. */
  report(): object {
    this.note();
    const got = this.#taken.flatMap(({ arrival: { flow }, complete_ns, in_arrivals }) =>
      flow === undefined ? [] : [{ index: flow.index, complete_ns, in_arrivals }],
    );
    return { sent: this.#sent, got, wrong: this.#wrong };
  }
}

/** Runs `repnet-bench lab` until its input ends. */
export async function labMain(): Promise<never> {
  const say = (text: string): void => void process.stdout.write(text);
  let host: LabHost | undefined;
  const obey = (line: string): void => {
    // Bytes that have arrived are read first.
    if (line === 'note') setImmediate(() => host!.note());
    else if (line === 'report') say(`${JSON.stringify(host!.report())}\n`);
    else {
      const [at, due_ns] = line.split(' ');
      host!.begin(Number(at), BigInt(due_ns!));
    }
  };
  let pending = '';
  process.stdin.setEncoding('latin1');
  process.stdin.on('data', (chunk: string) => {
    const lines = (pending + chunk).split('\n');
    pending = lines.pop()!;
    if (host !== undefined) lines.forEach(obey);
    else if (lines.length > 0) {
      // Nothing more is said before it is ready.
      const task = JSON.parse(lines[0]!) as HostTask;
      host = new LabHost(task, (line) => say(`${line}\n`));
      host
        .listen()
        .then(() => host!.warmUp())
        .then(() => say(`${JSON.stringify({ node: process.version, bench: version })}\n`))
        .catch((error: Error) => say(`${JSON.stringify({ failed: error.message })}\n`));
    }
  });
  // Connections stay open until the process ends, because peers may still report on them.
  await new Promise((resolve) => process.stdin.once('end', resolve));
  process.exit(0);
}
