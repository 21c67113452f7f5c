/** The sender at the threshold of doubling: what it waits for, how long, and how much it doubles meanwhile. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Flow } from '../dist/flow/flow.js';
import repnet from '../dist/index.js';
import { ANSWER_BYTES, Record, RecordParser } from '../dist/wire.js';
import { memoryLeg } from './lib/memory-leg.mjs';
import { movedClock } from './lib/moved-clock.mjs';
import { startRelay } from './lib/relay.mjs';
import { echo, echoServer, until } from './lib/support.mjs';

/** Longer than the wait for a verdict. */
const WAIT = 30;

/** A flow with two open connections that take everything, and what each has taken of the application's bytes. */
function doubled(t, threshold) {
  const clock = movedClock();
  t.after(() => clock.stop());
  const outer = { deliver: () => true, destroy() {}, touch() {} };
  const flow = new Flow(outer, { threshold, lull: 50 });
  const taken = [0, 0];
  const leg = (copy) => {
    const take = (parts, done) => {
      for (const part of parts) taken[copy] += part.length;
      done?.();
    };
    return Object.assign(memoryLeg(copy), { send: take, post: take });
  };
  flow.open(leg(0));
  flow.open(leg(1));
  return { flow, taken, clock };
}

test('no verdict comes: the message goes on by doublings, each after a wait of its own', (t) => {
  const { flow, taken, clock } = doubled(t, 1_000);
  flow.write(Buffer.alloc(100_000), () => {});
  const seen = [taken[0]];
  for (let n = 0; n < 4; n++) {
    clock.tick(WAIT);
    seen.push(taken[0]);
  }
  assert.deepEqual(seen, [1_000, 2_000, 4_000, 8_000, 16_000]);
});

test('one write of many thresholds without a verdict is sent, whatever its length', (t) => {
  const { flow, taken, clock } = doubled(t, 10);
  let sent = false;
  flow.write(Buffer.alloc(10_000_000), () => {
    sent = true;
  });
  for (let n = 0; n < 30 && !sent; n++) clock.tick(WAIT);
  assert.equal(sent, true);
  assert.equal(taken[0], 10_000_000);
});

test('a verdict ends the wait: one connection carries the rest', (t) => {
  const { flow, taken } = doubled(t, 1_000);
  flow.write(Buffer.alloc(100_000), () => {});
  flow.sender.report(1_000, 1_000);
  assert.equal(taken[0], 100_000);
  assert.ok(taken[1] < 1_200, `${taken[1]} bytes on the second`);
});

test('threshold 0: both connections are made and nothing is doubled', async (t) => {
  const { port } = await echoServer(t, { threshold: 0 });
  repnet.resetStats();
  const socket = repnet.connect({ host: '127.0.0.1', port, replicate: 'flow', peer: 'repnet', threshold: 0 });
  t.after(() => socket.destroy());
  await until(() => repnet.stats().flowsPaired === 1);
  for (const message of ['first', 'x'.repeat(1_000)]) assert.equal(await echo(socket, message), message);
  assert.equal(repnet.stats().bytesDoubled, 0);
});

test('a copy that falls behind is told to stop; what is left of the message goes on the other; the next is doubled again', async (t) => {
  const THRESHOLD = 1_000_000;
  const received = { bytes: 0, socket: undefined };
  const server = repnet.createServer({ threshold: THRESHOLD }, (socket) => {
    received.socket = socket;
    socket.on('error', () => {}).on('data', (chunk) => (received.bytes += chunk.length));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const carried = [0, 0];
  const told = new ControlLog();
  const relay = await startRelay({
    targetPort: server.address().port,
    // The copy keeps its hello and some records, and goes on when the first has brought the rest.
    faultsFor: (_, copy) =>
      copy === 1 ? [{ copy, direction: 'up', at: 50_000, kind: 'pause', ms: 50 }] : [],
    onBytes(_, copy, direction, bytes) {
      if (direction === 'up') carried[copy] += bytes.length;
      else if (copy === 1) told.add(bytes);
    },
  });
  const { host, port } = relay;
  const socket = repnet.connect({ host, port, peer: 'repnet', threshold: THRESHOLD, lull: 60_000 });
  t.after(() => {
    for (const each of [socket, received.socket, relay, server]) each?.destroy?.() ?? each?.close();
  });
  repnet.resetStats();
  await until(() => repnet.stats().flowsPaired === 1);

  let written = 0;
  const write = (bytes) => {
    socket.write(Buffer.alloc(bytes));
    written += bytes;
  };
  write(300_000);
  await until(() => told.types.includes(Record.stop), 'the second copy is told to stop');
  await until(() => repnet.stats().doublingStopped === 1, 'it has stopped');
  const { bytesDoubled } = repnet.stats();
  await until(() => carried[1] > bytesDoubled, 'what was doubled before has passed');
  const before = carried[1];
  write(200_000);
  await until(() => received.bytes === written);
  assert.equal(repnet.stats().bytesDoubled, bytesDoubled);
  assert.equal(carried[1], before, 'nothing more on the copy that is behind');

  // The peer speaks: what is written next is a new message.
  received.socket.write('well?');
  await new Promise((resolve) => socket.once('data', resolve));
  const doubledUp = repnet.stats().bytesDoubled;
  write(1_000);
  await until(() => received.bytes === written);
  await until(() => carried[1] === before + 1_010, 'the new message and its header on the second copy, too');
  assert.equal(repnet.stats().bytesDoubled, doubledUp + 1_000);
  assert.equal(repnet.stats().doublingResumed, 1);
});

/** The types of the control records in what a replica brings: after an answer, and before any data. */
class ControlLog {
  types = [];
  #bytes = Buffer.alloc(0);
  add(bytes) {
    this.#bytes = Buffer.concat([this.#bytes, bytes]);
    this.types = [];
    new RecordParser().feed(this.#bytes.subarray(ANSWER_BYTES), {
      onData() {},
      onControl: (type) => this.types.push(type),
    });
  }
}
