/**
 * The floor below RepFlow: what a flow says on the wire (docs/wire-format.md), said by two sockets of net. The first carries the stream, the
 * second a hello, its answer and records; whichever brings a byte first delivers it, and the first to say the end ends the flow. Nothing else
 * is here: no bounds, timers, memory of pairs, refusals or failures; no flow that would suffer from one would get through. What RepFlow
 * takes beyond this it takes for what it promises.
 */
import net from 'node:net';
import { nextPort } from '../dist/client/ports.js';

const HELLO_BYTES = 76;
const ANSWER_BYTES = 24;
const HEADER_BYTES = 10;
const DATA = 1;
const END = 4;

function record(type, offset, length = 0) {
  const header = Buffer.allocUnsafe(HEADER_BYTES);
  header.writeUInt32BE(type * 2 ** 24 + length, 0);
  header.writeUIntBE(offset, 4, 6);
  return header;
}

/** One end of a flow: two connections, and what the application sees of them. */
class WireFlow {
  #first;
  #second;
  /** What is read on the second before its records; and what is to be said there before ours. */
  #preamble;
  #preface;
  #sent = 0;
  #ended = false;
  #received = 0;
  #over = false;
  /** Written before the second connection was there. */
  #archive = [];
  /** Of the second: bytes of a header, or of the preamble, that are not all there; and of a record that are still to come. */
  #partial = Buffer.alloc(0);
  #left = 0;
  #offset = 0;
  ondata = () => {};
  onend = () => {};

  constructor(preamble, preface) {
    this.#preamble = preamble;
    this.#preface = preface;
  }

  get sockets() {
    return [this.#first, this.#second];
  }

  first(socket) {
    this.#first = socket;
    let received = 0;
    socket.on('data', (chunk) => {
      received += chunk.length;
      this.#reach(received, chunk);
    });
    socket.on('end', () => this.#finish());
    return this;
  }

  /** `rest`: what has been read of it already. */
  second(socket, rest) {
    this.#second = socket;
    socket.on('data', (chunk) => this.#read(chunk));
    this.#post(this.#archive, this.#ended);
    this.#archive = undefined;
    if (rest !== undefined) this.#read(rest);
    return this;
  }

  write(bytes) {
    this.#first?.write(bytes);
    this.#say(bytes, false);
  }

  end(bytes) {
    this.#first?.end(bytes);
    this.#ended = true;
    this.#say(bytes, true);
  }

  #say(bytes, ends) {
    const parts = bytes === undefined ? [] : [record(DATA, this.#sent, bytes.length), bytes];
    this.#sent += bytes?.length ?? 0;
    if (this.#second === undefined) this.#archive.push(...parts);
    else this.#post(parts, ends);
  }

  /** One write for all of it. */
  #post(parts, ends) {
    const socket = this.#second;
    socket.cork();
    if (this.#preface !== undefined) socket.write(this.#preface);
    this.#preface = undefined;
    for (const part of parts) socket.write(part);
    if (ends) socket.write(record(END, this.#sent));
    socket.uncork();
    if (ends && this.#over) socket.end();
  }

  /** The stream is there up to `offset`, which is the end of `chunk`. */
  #reach(offset, chunk) {
    const fresh = offset - this.#received;
    if (fresh <= 0) return;
    this.#received = offset;
    this.ondata(fresh === chunk.length ? chunk : chunk.subarray(chunk.length - fresh));
  }

  #finish() {
    if (this.#over) return;
    this.#over = true;
    this.onend();
    // As a socket of net ends itself when its peer has ended.
    if (!this.#ended) this.end();
    else this.#second?.end();
  }

  #read(chunk) {
    let bytes = this.#partial.length === 0 ? chunk : Buffer.concat([this.#partial, chunk]);
    if (this.#preamble > 0 && bytes.length >= this.#preamble) {
      bytes = bytes.subarray(this.#preamble);
      this.#preamble = 0;
    }
    while (this.#preamble === 0) {
      if (this.#left > 0) {
        const part = bytes.subarray(0, this.#left);
        if (part.length === 0) break;
        this.#left -= part.length;
        this.#offset += part.length;
        bytes = bytes.subarray(part.length);
        this.#reach(this.#offset, part);
        continue;
      }
      if (bytes.length < HEADER_BYTES) break;
      const word = bytes.readUInt32BE(0);
      const offset = bytes.readUIntBE(4, 6);
      bytes = bytes.subarray(HEADER_BYTES);
      if (word >>> 24 === DATA) {
        this.#left = word & 0xffffff;
        this.#offset = offset;
      } else if (offset === this.#received) this.#finish();
    }
    this.#partial = bytes;
  }
}

const HELLO = Buffer.alloc(HELLO_BYTES, 'h');
const ANSWER = Buffer.alloc(ANSWER_BYTES, 'r');

/** `use` of a flow to two ports, from one; again from another if that is taken. */
export async function dialOnWire(to, [firstPort, secondPort], use) {
  for (;;) {
    const localPort = nextPort();
    const flow = new WireFlow(ANSWER_BYTES, HELLO);
    const second = net.connect({ ...to, port: secondPort, localPort });
    const first = net.connect({ ...to, port: firstPort, localPort });
    const failed = new Promise((_, reject) => {
      for (const socket of [first, second]) socket.on('error', reject);
    });
    try {
      return await Promise.race([use(flow.first(first).second(second)), failed]);
    } catch (error) {
      for (const socket of [first, second]) socket.destroy();
      if (error.code !== 'EADDRINUSE') throw error;
    }
  }
}

/** Servers for the two ports; `serve` is given each flow once, when its first connection is there. */
export function serveOnWire(serve) {
  const flows = new Map();
  /** Second connections that came before their first. */
  const early = new Map();
  const options = { noDelay: true };
  const first = net.createServer(options, (socket) => {
    const { remotePort } = socket;
    const flow = new WireFlow(HELLO_BYTES, ANSWER).first(socket);
    const second = early.get(remotePort);
    early.delete(remotePort);
    serve(flow);
    if (second !== undefined) flow.second(second);
    else flows.set(remotePort, flow);
    socket.on('error', () => socket.destroy());
  });
  const second = net.createServer(options, (socket) => {
    const { remotePort } = socket;
    const flow = flows.get(remotePort);
    flows.delete(remotePort);
    if (flow === undefined) early.set(remotePort, socket);
    else flow.second(socket);
    socket.on('error', () => socket.destroy());
  });
  return [first, second];
}
