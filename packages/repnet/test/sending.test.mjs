/** What the sending side tells the application of its writes, and what the connections carry, on connections made of memory. */
import assert from 'node:assert/strict';
import net from 'node:net';
import { before, beforeEach, test } from 'node:test';
import { forgetPeers } from '../dist/client/peers.js';
import repnet from '../dist/index.js';
import { memoryLeg, newFlow } from './lib/memory-leg.mjs';
import { defaults, hello, OWN_ADDRESS, ownPort, until } from './lib/support.mjs';

before(() => {
  Object.assign(defaults, { waitTimeout: 5_000, pairTimeout: 5_000 });
});
beforeEach(() => {
  forgetPeers();
  repnet.resetStats();
});

for (const pending of [true, false])
  test(`the end fails under the one open copy: ${pending ? 'the copy to come carries it' : 'an error'}`, async () => {
    const failure = new Error('write EPIPE');
    const flow = newFlow();
    const leg = memoryLeg(1);
    leg.post = (_, done) => setImmediate(done, failure);
    leg.destroy = (error) => flow.legLost(leg, error);
    flow.open(leg);
    if (!pending) flow.abandon(0);
    await new Promise((resolve) => flow.write(Buffer.from('all of it'), resolve));
    const error = await new Promise((resolve) => flow.end(resolve));
    assert.equal(error, pending ? null : failure);
  });

for (const [when, opened] of [
  ['open', [0, 1]],
  ['still to come', [0]],
])
  test(`the second connection, ${when}, carries what was written, not what its buffer holds since`, async () => {
    const flow = newFlow();
    const legs = [memoryLeg(0), memoryLeg(1)];
    for (const copy of opened) flow.open(legs[copy]);
    const buffer = Buffer.from('as written');
    await new Promise((resolve) => flow.write(buffer, resolve));
    buffer.fill('!');
    if (!opened.includes(1)) flow.open(legs[1]);
    assert.equal(legs[1].payload(), 'as written');
  });

for (const slow of [0, 1])
  test(`a ${slow === 0 ? 'first' : 'second'} connection that is slow carries what was written, not what its buffer holds since`, async () => {
    const flow = newFlow();
    const legs = [0, 1].map((copy) => memoryLeg(copy, { slow: copy === slow }));
    for (const leg of legs) flow.open(leg);
    const buffer = Buffer.from('as written');
    // The slow one does not delay the application.
    await new Promise((resolve) => flow.write(buffer, resolve));
    buffer.fill('!');
    assert.deepEqual([legs[0].bytes().toString(), legs[1].payload()], ['as written', 'as written']);
  });

test('a message that outgrows the threshold in one write is called back once, when the copy that keeps it has all', async () => {
  const flow = newFlow(10);
  const legs = [memoryLeg(0), memoryLeg(1, { slow: true })];
  for (const leg of legs) flow.open(leg);
  flow.tx.verdict = 0;
  const called = [];
  flow.write(Buffer.from('0123456789 and more'), (error) => called.push(error));
  assert.deepEqual(called, [undefined]);
  assert.equal(legs[0].bytes().toString(), '0123456789 and more');
  assert.equal(legs[1].payload(), '0123456789');
});

test('a write under way on the last connection when that is lost has failed, once', async () => {
  const flow = newFlow(10);
  const legs = [memoryLeg(0, { slow: true }), memoryLeg(1, { slow: true })];
  for (const leg of legs) flow.open(leg);
  flow.tx.verdict = 0;
  const called = [];
  flow.write(Buffer.from('0123456789 and more'), (error) => called.push(error.code));
  const reset = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
  for (const leg of legs) flow.legLost(leg, reset);
  for (const leg of legs) leg.settle(reset);
  assert.deepEqual(called, ['ECONNRESET']);
});

for (const [how, lose, expected] of [
  [
    'has failed',
    (flow, leg) => flow.legLost(leg, Object.assign(new Error(), { code: 'ETIMEDOUT' })),
    'ETIMEDOUT',
  ],
  ['was given up', (flow, leg) => flow.abandon(leg.copy), 'EPIPE'],
])
  test(`the end of a stream whose last connection ${how} is an error, also after the peer's`, async () => {
    const flow = newFlow();
    const legs = [memoryLeg(0), memoryLeg(1)];
    for (const leg of legs) {
      Object.assign(leg, { abort() {}, close() {} });
      flow.open(leg);
    }
    await new Promise((resolve) => flow.write(Buffer.from('x'), resolve));
    flow.receiver.onControl(4, 0, -1);
    assert.equal(flow.receiver.ended, true);
    for (const leg of legs) lose(flow, leg);
    const error = await new Promise((resolve) => flow.end(resolve));
    assert.equal(error?.code, expected);
  });

test('the end of a stream that the peer has closed in order is none, as with net', async () => {
  const flow = newFlow();
  const legs = [memoryLeg(0), memoryLeg(1)];
  for (const leg of legs) {
    leg.close = () => {};
    flow.open(leg);
  }
  flow.rx.end(0);
  flow.receiver.checkEnd();
  for (const leg of legs) flow.legFin(leg);
  const error = await new Promise((resolve) => flow.end(resolve));
  assert.equal(error, null);
});

for (const code of ['ECONNRESET', 'EPIPE'])
  for (const when of ['before it is sent', 'under it'])
    test(`the end of a stream whose peer has ended its own and gone, ${code} ${when}, is no error, as with net`, async () => {
      const flow = newFlow();
      const legs = [memoryLeg(0), memoryLeg(1)];
      const reset = Object.assign(new Error(), { code });
      for (const leg of legs) {
        leg.destroy = (error) => flow.legLost(leg, error);
        flow.open(leg);
      }
      await new Promise((resolve) => flow.write(Buffer.from('x'), resolve));
      flow.receiver.onControl(4, 0, -1);
      assert.equal(flow.receiver.ended, true);
      if (when === 'under it') for (const leg of legs) leg.post = (_, done) => setImmediate(done, reset);
      else for (const leg of legs) flow.legLost(leg, reset);
      const error = await new Promise((resolve) => flow.end(resolve));
      assert.equal(error, null);
    });

test('the end of a stream that the peer has closed on one connection in order, and the system reset on the other, is no error', async () => {
  const flow = newFlow();
  const legs = [memoryLeg(0), memoryLeg(1)];
  for (const leg of legs) flow.open(leg);
  flow.rx.end(0);
  flow.receiver.checkEnd();
  flow.legFin(legs[1]);
  flow.legLost(legs[0], Object.assign(new Error(), { code: 'ECONNRESET' }));
  const error = await new Promise((resolve) => flow.end(resolve));
  assert.equal(error, null);
});

/** What a server hears that answers with 30 MB, of which the client takes 1 MB before it leaves. */
async function eventsOfServer(t, library, server, client, leave) {
  const events = [];
  const listening = library.createServer(server, (socket) => {
    for (const name of ['error', 'finish', 'close'])
      socket.on(name, (error) => events.push(error?.code ? `${name} ${error.code}` : name));
    socket.once('data', () => {
      socket.end(Buffer.alloc(30_000_000), (error) => events.push(error ? `ended ${error.code}` : 'ended'));
    });
    socket.resume();
  });
  await new Promise((resolve) => listening.listen(0, '127.0.0.1', resolve));
  t.after(() => listening.close());
  const socket = library.connect({ host: '127.0.0.1', port: listening.address().port, ...client });
  t.after(() => socket.destroy());
  let read = 0;
  socket.on('error', () => {});
  socket.on('data', (chunk) => {
    read += chunk.length;
    if (read > 1_000_000 && !socket.destroyed) leave(socket);
  });
  socket.write('x');
  await until(() => events.some((event) => event.startsWith('close')), 'the server has closed');
  return events.sort();
}

for (const [how, leave] of [
  ['destroys its socket', (socket) => socket.destroy()],
  ['resets it', (socket) => socket.resetAndDestroy()],
  ['ends and destroys it', (socket) => socket.end().destroy()],
])
  test(`a client that ${how} before it has read the reply: the server's error is that of net`, async (t) => {
    const flow = { replicate: 'flow', peer: 'repnet' };
    const codes = (events) => events.map((event) => event.replace('EPIPE', 'ECONNRESET'));
    const expected = ['close', 'ended ECONNRESET', 'error ECONNRESET'];
    assert.deepEqual(codes(await eventsOfServer(t, net, {}, {}, leave)), expected);
    // Whether a read or a write hears of it first is chance.
    for (let i = 0; i < 5; i++)
      assert.deepEqual(codes(await eventsOfServer(t, repnet, {}, flow, leave)), expected);
  });

/** A server whose write of 8 MB its first connection is busy with, since that is not read, when the second has come and brings it, too. */
async function busyWhenTheSecondComes(t, events) {
  const REPLY = 8_000_000;
  let accepted;
  const server = repnet.createServer({ threshold: 2 * REPLY }, (socket) => {
    accepted = socket.on('error', (error) => events.push(error)).on('close', () => events.push('close'));
    socket.write(Buffer.alloc(REPLY), (error) => events.push(error));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  const { port } = server.address();
  const from = { localAddress: OWN_ADDRESS, localPort: ownPort() };
  const first = net.connect({ host: '127.0.0.1', port, ...from }).on('error', () => {});
  await until(() => accepted !== undefined);
  const second = net.connect({ host: '127.0.0.1', port: port + 1, ...from }).on('error', () => {});
  t.after(() => {
    for (const socket of [accepted, first, second]) socket.destroy();
  });
  await new Promise((resolve) => second.once('connect', resolve));
  let brought = 0;
  second.on('data', (chunk) => (brought += chunk.length));
  second.write(hello({ socket: second }, port));
  await until(() => brought > REPLY, 'the second connection has brought all of it');
  assert.deepEqual(events, []);
  return { accepted, first };
}

test('a write that the first connection is busy with when the second comes, and that is lost: the second has carried it', async (t) => {
  const events = [];
  const { accepted, first } = await busyWhenTheSecondComes(t, events);
  first.resetAndDestroy();
  await until(() => events.length > 0);
  assert.deepEqual([events, accepted.destroyed], [[null], false]);
});

test("a write that the first connection is busy with when the second comes is called back before 'close', as with net", async (t) => {
  const events = [];
  const { accepted } = await busyWhenTheSecondComes(t, events);
  accepted.resetAndDestroy();
  await until(() => events.length === 2);
  assert.deepEqual(events, [null, 'close']);
});
