/** A flow between two applications over two connections of memory: the client's side of dialling, and the server's of pairing, in short. */

import { LateFirst, LateSecond } from '../../dist/client/late.js';
import { RepnetError } from '../../dist/errors.js';
import { Flow } from '../../dist/flow/flow.js';
import { COPIES, PRIMARY, REPLICA } from '../../dist/flow/machine.js';
import { patientTimeout } from '../../dist/flow/waits.js';
import { Remains } from '../../dist/server/remains.js';
import { ANSWER_BYTES, decodeAnswer, encodeAnswer, HELLO_BYTES } from '../../dist/wire.js';
import { MemoryPath } from './memory-path.mjs';

const PAIR_TIMEOUT = 500;
const WAIT_TIMEOUT = 3_000;
const TICKS = 4;
/** Times PAIR_TIMEOUT for which the server may answer when the first connection is lost. */
const MOST_WAITS = 10;
const CLIENT = 0;
const SERVER = 1;

const PERIOD = 251;
const PATTERN = Buffer.from(Array.from({ length: 1 << 17 }, (_, n) => ((n % PERIOD) * 37 + 11) & 0xff));
/** Returns the bytes that both applications write: at an offset, so long. */
const piece = (offset, length) => PATTERN.subarray(offset % PERIOD, (offset % PERIOD) + length);

/** An application at one end: what it has written and read, and how its socket ended. */
class End {
  connecting = true;
  destroyed = false;
  unreferenced = false;
  received = 0;
  written = 0;
  ended = false;
  finished = false;
  /** Bytes are other than were sent, or come after the end. */
  wrong = undefined;
  error = undefined;
  #queue = [];
  #writing = false;
  #ending = false;

  constructor(pair, side) {
    Object.assign(this, { pair, side });
  }

  // ---------------------------------------------------------------- as the socket of a flow

  touch() {}

  deliver(chunk) {
    if (this.destroyed || this.ended) this.wrong ??= 'something after the end';
    if (chunk === null) {
      this.ended = true;
      this.#closeIfOver();
      setImmediate(() => this.pair.script.heard(this));
      return true;
    }
    for (let at = 0; at < chunk.length; at += PATTERN.length / 2) {
      const part = chunk.subarray(at, at + PATTERN.length / 2);
      if (!part.equals(piece(this.received, part.length)))
        this.wrong ??= `other bytes at ${this.received} (${part.length} of them)`;
      this.received += part.length;
    }
    setImmediate(() => this.pair.script.heard(this));
    if (!this.pair.script.behind()) return true;
    setTimeout(() => this.destroyed || this.flow.resume(), 3);
    return false;
  }

  destroy(error) {
    if (this.destroyed) return;
    this.destroyed = true;
    this.error = error;
    this.pair.closed(this);
    this.flow.close(false);
  }

  // ---------------------------------------------------------------- as an application

  write(length) {
    if (this.destroyed) return;
    this.#queue.push(length);
    this.written += length;
    this.#next();
  }

  end() {
    if (this.#ending) return;
    this.#ending = true;
    this.#next();
  }

  /** One write at a time, as a stream does; what waits goes in one. */
  #next() {
    if (this.#writing || this.destroyed || this.connecting || this.flow === undefined) return;
    if (this.#queue.length > 0) {
      const length = this.#queue.reduce((sum, each) => sum + each, 0);
      const bytes = Buffer.allocUnsafe(length);
      for (let at = 0; at < length; at += 1 << 16) {
        const part = Math.min(1 << 16, length - at);
        piece(this.flow.tx.offset + at, part).copy(bytes, at);
      }
      this.#queue = [];
      this.#writing = true;
      this.flow.write(bytes, (error) => {
        this.#writing = false;
        if (error) return this.destroy(error);
        setImmediate(() => this.#next());
      });
    } else if (this.#ending && !this.finished) {
      this.#writing = true;
      this.flow.end((error) => {
        this.#writing = false;
        if (error) return this.destroy(error);
        this.finished = true;
        this.#closeIfOver();
      });
    }
  }

  connected() {
    this.connecting = false;
    setImmediate(() => {
      this.flow.resume();
      this.pair.script.heard(this);
      this.#next();
    });
  }

  #closeIfOver() {
    if (this.ended && this.finished) setImmediate(() => this.destroy(undefined));
  }
}

export class FlowPair {
  ends = [new End(this, CLIENT), new End(this, SERVER)];
  processes = [{ stillUntil: 0 }, { stillUntil: 0 }];
  paths;
  #attempts = [true, true];
  #remains;
  #kept;
  #late;
  #due;

  /** `shapes`: of both paths; `delay`: ms after which the second begins. */
  constructor(time, script, { shapes, delay, threshold }) {
    Object.assign(this, { time, script });
    this.options = { threshold, lull: 50, copyDelay: 0, pairTimeout: PAIR_TIMEOUT, loser: 'rst' };
    this.paths = COPIES.map((copy) => new MemoryPath(time, copy, shapes[copy], this.processes));
    const [client] = this.ends;
    client.flow = new Flow(client, this.options);
    Object.assign(client.flow, { joined: false, client: this });
    this.#dial(PRIMARY, 0);
    this.#dial(REPLICA, delay);
    this.#due = time.now + delay + PAIR_TIMEOUT;
    time.within(this.processes[CLIENT], () => patientTimeout(() => this.#timeout(), delay + PAIR_TIMEOUT));
  }

  /** SYN, SYN-ACK and ACK go the path as all else does. */
  #dial(copy, delay) {
    const {
      channels: [up, down],
      ends: [near, far],
    } = this.paths[copy];
    this.time.after(delay, () =>
      up.carry(0, () =>
        down.carry(0, () => {
          if (!this.#attempts[copy] || near.lost) return;
          this.time.as(this.processes[CLIENT], () => {
            if (this.#attempts[copy]) this.#opened(copy, near);
            else near.close();
          });
          up.carry(0, () => this.time.as(this.processes[SERVER], () => this.#accepted(copy, far)));
        }),
      ),
    );
  }

  // ---------------------------------------------------------------- the client

  #opened(copy, leg) {
    const [client] = this.ends;
    const { flow } = client;
    this.#attempts[copy] = false;
    if (flow.closed) return this.#openLate(leg);
    leg.sink = flow;
    flow.legs[copy] = leg;
    if (copy === PRIMARY) {
      flow.open(leg);
      if (client.connecting) client.connected();
      return;
    }
    flow.receiver.expectAnswer(leg);
    const hello = Buffer.alloc(HELLO_BYTES);
    leg.send([hello], (error) => error && leg.destroy(error));
  }

  answered(leg, bytes) {
    const [client] = this.ends;
    const { flow } = client;
    const answer = decodeAnswer(bytes);
    if (answer === undefined || answer.refusal !== 0) {
      leg.destroy();
      return false;
    }
    flow.joined = true;
    if (flow.tx.copies[REPLICA] === 'pending') {
      flow.open(leg);
      if (client.connecting) client.connected();
    }
    return true;
  }

  copyLost(leg) {
    return this.#lost(leg.copy);
  }

  #lost(copy) {
    const { flow } = this.ends[CLIENT];
    if (flow.tx.copies[copy] !== 'pending') return false;
    flow.tx.lose(copy);
    flow.rx.lose(copy);
    if (!this.#noneLeft() && !this.ends[CLIENT].connecting) flow.poke();
    return true;
  }

  #noneLeft() {
    const [client] = this.ends;
    if (!client.connecting || client.flow.tx.copies.some((copy) => copy !== 'gone')) return false;
    client.destroy(new RepnetError('ERR_REPNET_COPIES_FAILED', 'not connected'));
    return true;
  }

  copyAbandoned(copy) {
    this.#attempts[copy] = false;
    if (copy !== PRIMARY) return;
    this.#late?.close();
    this.#kept?.drop();
    this.#kept = undefined;
  }

  keepForFirst(archive) {
    this.#kept = archive;
  }

  keepSecond(leg, archive, total) {
    new LateSecond(leg, archive, total, PAIR_TIMEOUT, (bytes) => decodeAnswer(bytes)?.refusal === 0);
  }

  #openLate(leg) {
    const kept = this.#kept;
    this.#kept = undefined;
    if (kept !== undefined && this.time.now < this.#due) this.#late = new LateFirst(leg, kept);
    else {
      kept?.drop();
      this.#late = leg;
    }
  }

  firstBytes() {}

  #timeout(times = 1) {
    const { flow } = this.ends[CLIENT];
    if (flow.closed) return;
    const [first, second] = flow.tx.copies;
    if (second === 'pending') {
      const mayAnswer = flow.legs[REPLICA] !== undefined;
      const isOver = first === 'pending' || (first === 'gone' && times >= MOST_WAITS);
      if (mayAnswer && !isOver) {
        patientTimeout(() => this.#timeout(times + 1), PAIR_TIMEOUT);
        return;
      }
      flow.abandon(REPLICA);
    } else if (first === 'pending' && second === 'open') flow.abandon(PRIMARY);
    this.#noneLeft();
  }

  // ---------------------------------------------------------------- the server

  #accepted(copy, leg) {
    if (copy === PRIMARY) return this.#join(leg, undefined, undefined);
    let seen = Buffer.alloc(0);
    const gone = () => leg.close();
    leg.sink = {
      legData: (_, chunk) => {
        seen = Buffer.concat([seen, chunk]);
        if (seen.length < HELLO_BYTES) return true;
        this.#join(leg, answer(0), seen.length > HELLO_BYTES ? seen.subarray(HELLO_BYTES) : undefined);
        return !leg.stopped;
      },
      legFin: gone,
      legLost: gone,
    };
    leg.resumeReading();
  }

  #join(leg, said, rest) {
    const server = this.ends[SERVER];
    const begins = server.flow === undefined;
    if (begins) {
      server.flow = new Flow(server, this.options, { receives: 'request' });
      this.#wait(TICKS);
    }
    const { flow } = server;
    if (this.#remains?.joinable) {
      leg.sink = this.#remains;
      this.#remains.serve(leg, said, rest);
      this.#remains = undefined;
      return;
    }
    if (flow.closed || flow.tx.copies[leg.copy] !== 'pending') {
      if (said !== undefined) leg.send([answer(1)], () => {});
      return leg.close();
    }
    leg.sink = flow;
    if (!begins && flow.receiver.paused) leg.stopped = true;
    flow.open(leg, said);
    leg.flush();
    if (begins) server.connected();
    if (rest === undefined) return;
    if (flow.receiver.paused) flow.receiver.pause(leg, rest);
    else leg.receive(rest);
  }

  /** Counted in ticks, of which a process that stands still sees one. */
  #wait(ticks) {
    setTimeout(() => (ticks > 1 ? this.#wait(ticks - 1) : this.#waitOver()), WAIT_TIMEOUT / TICKS);
  }

  #waitOver() {
    const { flow } = this.ends[SERVER];
    for (const copy of COPIES) if (flow.tx.copies[copy] === 'pending') flow.abandon(copy);
    this.#remains?.waitOver();
    this.#remains = undefined;
  }

  // ---------------------------------------------------------------- how it goes

  /** Both ends are paired, and the client knows. */
  get paired() {
    const [client, server] = this.ends;
    return (
      client.flow.joined &&
      client.flow.tx.copies[PRIMARY] === 'open' &&
      server.flow?.tx.copies[PRIMARY] === 'open'
    );
  }

  /** An end is about to be closed: the server's keeps what it wrote for a connection that has not come. */
  closed(end) {
    const { flow } = end;
    if (end.side === CLIENT || end.error !== undefined || !flow.tx.archived) return;
    this.#remains = new Remains({
      archive: flow.sender.takeArchive(),
      total: flow.tx.offset,
      endedAt: undefined,
    });
  }

  get over() {
    return this.ends.every(({ destroyed }) => destroyed);
  }
}

function answer(refusal) {
  const bytes = encodeAnswer({ refusal, flags: 0, threshold: 1_000, port: 1, version: 2 });
  return bytes.subarray(0, ANSWER_BYTES);
}
