/** Much in one turn of the event loop: of records, by a peer, and of writes, by an application. */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { forgetPeers } from '../dist/client/peers.js';
import { Leg, nobody } from '../dist/flow/leg.js';
import { PRIMARY } from '../dist/flow/machine.js';
import repnet from '../dist/index.js';
import { ANSWER_BYTES, controlRecord, Record, RecordParser } from '../dist/wire.js';
import { memoryLeg, newFlow } from './lib/memory-leg.mjs';
import { data, defaults, echo, echoServer, hello, ownPort, raw, settle, until } from './lib/support.mjs';

before(() => {
  Object.assign(defaults, { waitTimeout: 60_000, pairTimeout: 60_000 });
  forgetPeers();
});

/** The types of the control records on a second connection, and the bytes of its data records. */
function records({ bytes }) {
  const seen = { controls: [], text: '' };
  new RecordParser().feed(bytes.subarray(ANSWER_BYTES), {
    onData: (_, text) => {
      seen.text += text;
    },
    onControl: (type) => seen.controls.push(type),
  });
  return seen;
}

test('20,000 questions in one write are answered once, and the flow goes on', async (t) => {
  const { port } = await echoServer(t);
  const localPort = ownPort();
  await raw(t, port, { localPort });
  const second = await raw(t, port + 1, { localPort });
  second.socket.write(hello(second, port));
  await until(() => second.bytes.length >= ANSWER_BYTES, 'the flow has both connections');
  const question = controlRecord(Record.query, 0);
  second.socket.write(Buffer.concat([...Array(20_000).fill(question), data(0, 'goes on')]));
  await until(() => records(second).text === 'goes on');
  assert.deepEqual(records(second).controls, [Record.alone]);
});

for (const writer of ['client', 'server'])
  test(`18,000 writes in one turn by the ${writer} of a flow with two connections arrive`, async (t) => {
    const WRITES = 18_000;
    const { sockets, port } = await echoServer(t);
    const client = repnet.connect({ host: '127.0.0.1', port, replicate: 'flow', peer: 'repnet' });
    t.after(() => client.destroy());
    await echo(client, 'x');
    await until(() => repnet.info(client).paired && repnet.info(sockets[0]).paired, 'both ends know of both');
    const socket = writer === 'client' ? client : sockets[0];
    let received = 0;
    client.on('data', (chunk) => {
      received += chunk.length;
    });
    let called = 0;
    for (let n = 0; n < WRITES; n++) socket.write('x', () => called++);
    await until(() => received === WRITES && called === WRITES, 'all of it is there');
    // The second connection is written to at the end of the turn.
    await settle();
  });

test('a callback that throws is uncaught, and keeps no other from being called', async (t) => {
  const leg = new Leg(PRIMARY, nobody, { bytesRead: 0, writeBuffer: () => 0, writev: () => 0 }, true);
  const uncaught = [];
  process.setUncaughtExceptionCaptureCallback(({ message }) => uncaught.push(message));
  t.after(() => process.setUncaughtExceptionCaptureCallback(null));
  const called = [];
  for (const name of ['first', 'second', 'third'])
    leg.post([Buffer.from(name)], () => {
      called.push(name);
      if (name !== 'third') throw new Error(name);
    });
  await settle();
  assert.deepEqual(
    { called, uncaught },
    { called: ['first', 'second', 'third'], uncaught: ['first', 'second'] },
  );
});

/** A flow whose second connection takes nothing that it is given to send, to a peer that wants word of every byte. */
function toOneThatReadsNothing() {
  const flow = newFlow();
  const legs = [memoryLeg(0), memoryLeg(1, { slow: true })];
  for (const leg of legs) flow.open(leg);
  flow.peerThreshold = 0;
  const [, second] = legs;
  /** Is told `bytes`, as much as is read at once in each turn. */
  const hears = async (bytes) => {
    for (let at = 0; at < bytes.length; at += 65_536) {
      flow.legData(second, bytes.subarray(at, at + 65_536));
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  return { flow, second, hears };
}

const SIXTY_FOUR = 'x'.repeat(64);
for (const [what, flood] of Object.entries({
  questions: () => Buffer.alloc(10_000_000, controlRecord(Record.query, 0)),
  'records of 64 bytes': () =>
    Buffer.concat(Array.from({ length: 50_000 }, (_, n) => data(64 * n, SIXTY_FOUR))),
  'records that come late': () =>
    Buffer.concat(
      Array.from({ length: 50_000 }, (_, n) =>
        Buffer.concat([data(64 * n, SIXTY_FOUR), data(0, SIXTY_FOUR)]),
      ),
    ),
}))
  test(`a peer that sends many ${what} and reads nothing: hardly anything waits to be sent to it`, async () => {
    const { flow, second, hears } = toOneThatReadsNothing();
    await hears(flood());
    assert.ok(second.backlog < 100, `${second.backlog} bytes`);
    flow.close(true);
  });

test('what could not be reported is, when the connection takes more', async () => {
  const { flow, second, hears } = toOneThatReadsNothing();
  for (let n = 0; n < 10; n++) await hears(data(64 * n, SIXTY_FOUR));
  second.settle();
  const reports = [];
  new RecordParser().feed(second.bytes(), {
    onData() {},
    onControl: (type, offset) => type === Record.report && reports.push(offset),
  });
  assert.deepEqual(reports, [64, 640]);
  flow.close(true);
});
