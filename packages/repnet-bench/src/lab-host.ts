/**
 * `repnet-bench lab`: a host of Tailcut's kernel lab. What it is to be comes in one line of JSON on standard input, then a line for
 * whatever it is to do; it says on standard output that it is ready, then one letter for each thing that happens, and at the end what it
 * has measured. Whoever told it keeps the time and knows which flows there are.
 */
import * as net from 'node:net';
import { defaults } from 'repnet';
import type { Dialer } from './client.js';
import { createDialer, listenReplicated } from './dial.js';
import { version } from './version.js';

/** What a host is told at first. */
export interface HostTask {
  readonly address: string;
  readonly port: number;
  /** All hosts of a run are served alike: `net` by plain node:net, the others by repnet. */
  readonly mode: 'net' | 'syn' | 'flow';
  /** Longer flows are not replicated. */
  readonly threshold: number;
  /** Milliseconds by which the second copy starts later. */
  readonly copyDelay: number;
  /** The bytes of all flows, in hexadecimal: each begins at a place of its own, and goes around. */
  readonly payload: string;
  readonly flows: readonly HostFlow[];
}

export interface HostFlow {
  readonly index: number;
  readonly to: string;
  readonly bytes: number;
  /** From which port; 0 leaves the choice to the kernel. */
  readonly port: number;
  /** Where in the payload it begins. */
  readonly place: number;
}

/** What a sender knows of a flow. Times are those of the monotonic clock, in ns. */
interface Sent {
  readonly index: number;
  readonly opened_ns: number;
  established_ns: number | null;
  /** The port that the flow came from in the end. */
  port: number;
}

/** What a receiver knows of a connection: not which flow it is, which the two ends' ports tell. */
interface Arrived {
  readonly from: string;
  readonly port: number;
  bytes: number;
  digest: number;
  last_ns: number;
  in_arrivals: number | null;
  ended: boolean;
}

/** Milliseconds that a flow waits for its second connection: more than the second that the other end gives it. */
const WAIT_TIMEOUT = 1200;
/** Flows that a host carries to itself before it is ready. */
const WARM_UPS = 30;

const now = (): number => Number(process.hrtime.bigint());

const FNV_OFFSET = 0x811c9dc5;
const FNV_PRIME = 0x01000193;

/** The 32-bit FNV-1a hash of what a connection has brought, continued. */
export function digest(bytes: Uint8Array, before: number = FNV_OFFSET): number {
  let hash = before;
  for (const byte of bytes) hash = Math.imul(hash ^ byte, FNV_PRIME);
  return hash >>> 0;
}

export class LabHost {
  readonly #task: HostTask;
  readonly #tell: (letter: string) => void;
  readonly #payload: Buffer;
  readonly #period: number;
  readonly #dialer: Dialer;
  readonly #sent: Sent[] = [];
  readonly #arrived: Arrived[] = [];
  readonly #wrong: string[] = [];
  #noted = false;
  #warm = false;

  /** `tell`: `r` when all of a flow has come, `a` when nothing more comes of one that was sent, `w` when something is wrong. */
  constructor(task: HostTask, tell: (letter: string) => void) {
    const { mode, port, threshold, copyDelay, flows } = task;
    this.#task = task;
    this.#tell = tell;
    const period = Buffer.from(task.payload, 'hex');
    this.#period = period.length;
    this.#payload = Buffer.concat([period, period]); // any period of it is in one piece
    this.#dialer = createDialer({
      mode,
      servers: [...flows.map((flow) => flow.to), task.address].map((host) => ({ host, port })),
      threshold,
      replicaPort: port + 1,
      copyDelay,
      pairing: 'address',
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
    // A server that has just begun lets no flow start with its second connection, in case a process before it has the first.
    if (mode !== 'net') await new Promise((resolve) => setTimeout(resolve, 1.5 * WAIT_TIMEOUT));
  }

  #event(letter: string): void {
    if (this.#warm) this.#tell(letter);
  }

  #fail(what: string): void {
    this.#wrong.push(what);
    this.#event('w');
  }

  /** Carries a few flows to itself, which leave its host by no link, so that the first of the run finds everything compiled. */
  async warmUp(): Promise<void> {
    const { address, flows } = this.#task;
    for (let round = 0; round < WARM_UPS; round++) {
      // RepFlow finds ports of its own, as it does where the caller has none.
      const flow = { index: 0, to: address, bytes: 1000, port: 0, place: 0 };
      const socket = this.#open(flow, flows.length);
      await new Promise((resolve) => socket.once('close', resolve));
    }
    if (this.#wrong.length > 0) throw new Error(this.#wrong.join('; '));
    this.#sent.length = 0;
    this.#arrived.length = 0;
    // What the start has left behind is not collected while flows are due. Twice: what has survived once is still copied.
    for (let time = 0; time < 2; time++) globalThis.gc?.();
    this.#warm = true;
  }

  /** Begins the flow at this place of the task's list. */
  begin(at: number): void {
    this.#open(this.#task.flows[at]!, at);
  }

  #open(flow: HostFlow, server: number): net.Socket {
    const sent: Sent = { index: flow.index, opened_ns: now(), established_ns: null, port: 0 };
    this.#sent.push(sent);
    const { port, bytes } = flow;
    const socket = this.#dialer.dial(server, this.#dialer.replicates(bytes), port === 0 ? undefined : port);
    socket.once('connect', () => {
      sent.established_ns = now();
      sent.port = socket.localPort ?? 0;
    });
    socket.on('error', (error: NodeJS.ErrnoException) => {
      // A SYN that was sent as often as the plan says: the flow does not finish.
      if (error.code === 'ETIMEDOUT') return;
      const after = Math.round((now() - sent.opened_ns) / 1e6);
      const how = `${error.message} after ${after} ms and ${socket.bytesWritten} bytes, by ${this.#task.mode}`;
      this.#fail(`flow ${flow.index}: its sender: ${how}`);
    });
    socket.on('data', () => this.#fail(`flow ${flow.index}: the receiver has sent something`));
    socket.once('close', () => this.#event('a'));
    this.#pump(socket, flow);
    return socket;
  }

  #pump(socket: net.Socket, { bytes, place }: HostFlow): void {
    let offset = 0;
    const pump = (): void => {
      while (offset < bytes) {
        const from = (place + offset) % this.#period;
        const part = this.#payload.subarray(from, from + Math.min(this.#period, bytes - offset));
        offset += part.length;
        if (offset === bytes) socket.off('drain', pump).end(part);
        else if (!socket.write(part)) return; // goes on at 'drain'
      }
    };
    socket.on('drain', pump);
    pump();
  }

  #take(socket: net.Socket): void {
    const arrived: Arrived = {
      from: socket.remoteAddress ?? '',
      port: socket.remotePort ?? 0,
      bytes: 0,
      digest: FNV_OFFSET,
      last_ns: 0,
      in_arrivals: this.#noted ? 0 : null,
      ended: false,
    };
    this.#arrived.push(arrived);
    socket.on('data', (chunk: Buffer) => {
      arrived.last_ns = now();
      arrived.bytes += chunk.length;
      arrived.digest = digest(chunk, arrived.digest);
    });
    socket.once('end', () => {
      arrived.ended = true;
      this.#event('r');
    });
    socket.on('error', (error) => this.#fail(`from ${arrived.from}:${arrived.port}: ${error.message}`));
  }

  /** The arrivals have ended. */
  note(): void {
    this.#noted = true;
    for (const arrived of this.#arrived) arrived.in_arrivals ??= arrived.bytes;
  }

  /** What there is to tell, at the end. */
  report(): object {
    this.note();
    return { sent: this.#sent, arrived: this.#arrived, wrong: this.#wrong };
  }
}

/** `repnet-bench lab`; ends when nobody is there any more to tell it anything. */
export async function labMain(): Promise<never> {
  const say = (text: string): void => void process.stdout.write(text);
  let host: LabHost | undefined;
  const obey = (line: string): void => {
    if (line === 'note') host!.note();
    else if (line === 'report') say(`${JSON.stringify(host!.report())}\n`);
    else host!.begin(Number(line));
  };
  let pending = '';
  process.stdin.setEncoding('latin1');
  process.stdin.on('data', (chunk: string) => {
    const lines = (pending + chunk).split('\n');
    pending = lines.pop()!;
    if (host !== undefined) lines.forEach(obey);
    else if (lines.length > 0) {
      // Nothing more is said before it is ready.
      host = new LabHost(JSON.parse(lines[0]!) as HostTask, say);
      host
        .listen()
        .then(() => host!.warmUp())
        .then(() => say(`${JSON.stringify({ node: process.version, bench: version })}\n`))
        .catch((error: Error) => say(`${JSON.stringify({ failed: error.message })}\n`));
    }
  });
  // What is open then, ends with the process, and not before: others may still have to tell of it.
  await new Promise((resolve) => process.stdin.once('end', resolve));
  process.exit(0);
}
