/**
 * A first connection whose client takes it for established may reach the server late: its last handshake packet, and all it
 * carries, were lost. The server forgets flows in the end, and would take what comes then for another flow.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import repnet from '../dist/index.js';
import { controlRecord, Record, RecordParser } from '../dist/wire.js';
import { memoryLeg, newFlow } from './lib/memory-leg.mjs';
import { startRelay } from './lib/relay.mjs';
import { data, defaults, echo, echoServer, OWN_ADDRESS, ownPort, ticks, until } from './lib/support.mjs';

/** A client's flow whose server says, on the second connection, that it goes on without the first. */
function alone(threshold, sent) {
  const flow = newFlow(threshold);
  flow.client = { copyAbandoned() {}, copyLost: () => false, firstBytes() {}, answered() {} };
  const legs = [memoryLeg(0), memoryLeg(1)];
  const fate = [];
  legs[0].abort = () => fate.push('reset');
  for (const leg of legs) flow.open(leg);
  flow.write(Buffer.alloc(Math.min(sent, threshold)), () => {});
  if (sent > threshold) {
    flow.sender.report(threshold, threshold);
    flow.write(Buffer.alloc(sent - threshold), () => {});
  }
  const says = (...records) => flow.legData(legs[1], Buffer.concat(records));
  return { flow, legs, fate, says };
}

/** An echo server that sees second connections alone; the first, as whoever has it sees it, and what has become of that. */
async function withoutFirst(t) {
  let [first, fate] = [];
  const fallen = (connection) => {
    first = connection;
    first.once('error', ({ code }) => (fate = code));
  };
  const relay = await startRelay({
    faultsFor: (_, copy) => (copy === 0 ? [{ copy, direction: 'up', kind: 'nosyn', at: 0, fallen }] : []),
  });
  t.after(() => relay.close());
  const { port, sockets } = await echoServer(t, { addresses: [`${relay.host}:${relay.port}`] });
  relay.targetPort = port;
  // A server that has just begun lets no flow begin with its second connection.
  await ticks(12, defaults.waitTimeout / 4);
  const { host } = relay;
  const connect = () => {
    // The relay uses the source port again, which a connection whose port the kernel chose would not let it.
    const from = { localAddress: OWN_ADDRESS, localPort: ownPort() };
    const socket = repnet.connect({ host, port: relay.port, ...from, replicate: 'flow', peer: 'repnet' });
    t.after(() => socket.destroy());
    return socket;
  };
  return { connect, first: () => first, fate: () => fate, sockets };
}

test('a server that has no first connection is left with none: it would take it for another flow later', () => {
  const { flow, fate, says, legs } = alone(1_000, 100);
  says(controlRecord(Record.alone, 0));
  assert.deepEqual(fate, ['reset']);
  flow.write(Buffer.from('more'), () => {});
  assert.match(legs[1].payload(), /more$/);
});

test('the first connection is kept for bytes that the second was not sent', () => {
  const { fate, says } = alone(1_000, 5_000);
  says(controlRecord(Record.alone, 0));
  assert.deepEqual(fate, []);
});

test('the first connection is kept for what the server sent on it before, until that has come', () => {
  const { fate, says } = alone(1_000, 100);
  says(controlRecord(Record.alone, 5));
  assert.deepEqual(fate, []);
  says(data(0, 'reply'));
  assert.deepEqual(fate, ['reset']);
});

test('a client that has closed the flow resets its first connection when the server says that it was over without it', () => {
  const { flow, fate, says } = alone(1_000, 100);
  flow.end(() => {});
  says(data(0, 'reply'), controlRecord(Record.end, 5));
  flow.close(false);
  assert.deepEqual(fate, []);
  says(controlRecord(Record.alone, 5));
  assert.deepEqual(fate, ['reset']);
});

/** A server's flow that began with its second connection, whose client has ended it; what it has said there when it is closed itself. */
function serves({ ends = true, comes = false } = {}) {
  const flow = newFlow(1_000, { receives: 'request' });
  const [first, second] = [memoryLeg(0), memoryLeg(1)];
  flow.open(second);
  flow.legData(second, Buffer.concat([data(0, 'request'), ...(ends ? [controlRecord(Record.end, 7)] : [])]));
  if (comes) flow.open(first);
  flow.end(() => {});
  flow.close(false);
  const said = [];
  new RecordParser().feed(second.bytes(), { onData() {}, onControl: (type) => said.push(type) });
  return said;
}

test('a server says that a flow was over without its first connection', () => {
  assert.ok(serves().includes(Record.alone));
});

test('a server that has had its first connection, or not all of the request, does not', () => {
  assert.ok(!serves({ comes: true }).includes(Record.alone));
  assert.ok(!serves({ ends: false }).includes(Record.alone));
});

test('a first connection that the server never sees is reset as soon as the flow is over', async (t) => {
  Object.assign(defaults, { waitTimeout: 400, pairTimeout: 800 });
  const { connect, first, fate } = await withoutFirst(t);
  const socket = connect();
  socket.resume().end('by the second');
  // Who has read the end of a stream hears of a reset when something is written.
  const isReset = () => {
    if (fate() === undefined) first()?.write('?');
    return fate() !== undefined;
  };
  await until(isReset, 'the first is reset');
  assert.match(fate(), /^(ECONNRESET|EPIPE)$/);
});

test('a first connection that the server never sees is reset when the server has stopped waiting for it, and the flow goes on', async (t) => {
  Object.assign(defaults, { waitTimeout: 400, pairTimeout: 800 });
  const { connect, fate, sockets } = await withoutFirst(t);
  const socket = connect();
  assert.equal(await echo(socket, 'by the second'), 'by the second');
  assert.equal(fate(), undefined);
  await until(() => fate() !== undefined, 'the first is reset');
  assert.equal(fate(), 'ECONNRESET');
  assert.equal(await echo(socket, 'by the second still'), 'by the second still');
  assert.equal(sockets.length, 1);
});
