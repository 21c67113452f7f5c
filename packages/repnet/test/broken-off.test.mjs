/**
 * A flow that breaks off is a reset at both ends, as with net: nobody is told an orderly end of a stream of which bytes are
 * lost, in either direction.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import { before, test } from 'node:test';
import { PRIMARY, REPLICA } from '../dist/flow/machine.js';
import repnet from '../dist/index.js';
import { controlRecord, Record } from '../dist/wire.js';
import { memoryLeg, newFlow } from './lib/memory-leg.mjs';
import { movedClock } from './lib/moved-clock.mjs';
import { startRelay } from './lib/relay.mjs';
import { defaults, grown, OWN_ADDRESS, ownPort, settle, until } from './lib/support.mjs';

before(() => {
  Object.assign(defaults, { waitTimeout: 400, pairTimeout: 800 });
});

const TOTAL = 3_000_000;

/** Notes what a socket is told. */
function watch(socket) {
  const seen = { bytes: 0, events: [] };
  const note = (event) => seen.events.push(event);
  socket.on('data', (chunk) => (seen.bytes += chunk.length));
  for (const event of ['end', 'finish']) socket.on(event, () => note(event));
  socket
    .on('error', ({ code }) => note(code))
    .on('close', (hadError) => note(hadError ? 'failed' : 'closed'));
  return seen;
}

/** One message of `TOTAL` bytes, whose first connection is reset after a megabyte; what both ends see. */
async function cutShort(t, api, direction) {
  const relay = await startRelay({
    faultsFor: (_, copy) => (copy === 0 ? [{ copy, direction, kind: 'rst', at: 1_000_000 }] : []),
  });
  const options = api === net ? {} : { addresses: [`${relay.host}:${relay.port}`] };
  const server = api.createServer({ allowHalfOpen: true, ...options });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  relay.targetPort = server.address().port;
  t.after(() => {
    relay.close();
    server.close();
  });
  if (api === repnet) await grown();
  const accepted = once(server, 'connection');
  const client = api.connect({
    host: relay.host,
    port: relay.port,
    localAddress: OWN_ADDRESS,
    localPort: ownPort(),
    allowHalfOpen: true,
    ...(api === net ? {} : { replicate: 'flow', peer: 'repnet' }),
  });
  const [stream] = await accepted;
  const ends = { client: watch(client), server: watch(stream) };
  const [from, to] = direction === 'up' ? [client, stream] : [stream, client];
  from.write(Buffer.alloc(TOTAL));
  to.write('word');
  t.after(() => {
    for (const socket of [client, stream]) socket.destroy();
  });
  const over = ({ events }) => ['failed', 'closed', 'end'].some((event) => events.includes(event));
  await until(() => over(ends.client) && over(ends.server), 'both ends are over');
  return direction === 'up'
    ? { sender: ends.client, receiver: ends.server }
    : { sender: ends.server, receiver: ends.client };
}

for (const api of [net, repnet])
  for (const direction of ['up', 'down'])
    test(`a reset in the middle of a long message ${direction}, ${api === net ? 'net' : 'repnet'}: both ends fail, and the receiver has no end`, async (t) => {
      let seen = await cutShort(t, api, direction);
      // The system may report a reset as an end, and net then has no more than that (docs/design.md, residual cases).
      while (api === net && seen.receiver.events.includes('end')) seen = await cutShort(t, api, direction);
      const { sender, receiver } = seen;
      assert.ok(receiver.bytes < TOTAL);
      assert.equal(receiver.events.includes('end'), false);
      assert.deepEqual(sender.events.slice(-2), ['ECONNRESET', 'failed']);
      // A reset that the system reports as an end (docs/design.md, residual cases) has an error of the library's.
      const [code, close] = receiver.events.slice(-2);
      assert.ok(['ECONNRESET', ...(api === net ? [] : ['ERR_REPNET_TRUNCATED'])].includes(code), code);
      assert.equal(close, 'failed');
    });

/** A flow whose first connection has carried a long message by itself, and is lost. */
function inDoubt(t) {
  const clock = movedClock();
  t.after(() => clock.stop());
  const flow = newFlow(1_000);
  flow.options.pairTimeout = 800;
  const [first, second] = [memoryLeg(PRIMARY), memoryLeg(REPLICA)];
  flow.open(first);
  flow.open(second);
  flow.write(Buffer.alloc(1_000), () => {});
  flow.sender.report(1_000, 1_000);
  flow.write(Buffer.alloc(9_000), () => {});
  flow.legLost(first, Object.assign(new Error('reset'), { code: 'ECONNRESET' }));
  const ended = [];
  flow.end((error) => ended.push(error ?? null));
  return { flow, clock, ended };
}

test('after the loss of a connection that carried bytes alone the stream ends when the peer says that it has them', (t) => {
  const { flow, ended } = inDoubt(t);
  assert.deepEqual(ended, []);
  flow.sender.report(9_999, 0);
  assert.deepEqual(ended, []);
  flow.sender.report(10_000, 0);
  assert.deepEqual(ended, [null]);
});

test('… or, of a peer of an earlier version, when it has been silent for twenty times pairTimeout', async (t) => {
  const { clock, ended } = inDoubt(t);
  clock.tick(15_999);
  await settle();
  assert.deepEqual(ended, []);
  clock.tick(1);
  await settle();
  assert.deepEqual(ended, [null]);
});

test('… and the stream without such bytes ends at once', () => {
  const flow = newFlow(1_000);
  const first = memoryLeg(PRIMARY);
  flow.open(first);
  flow.open(memoryLeg(REPLICA));
  flow.write(Buffer.alloc(1_000), () => {});
  flow.legLost(first, new Error('reset'));
  const ended = [];
  flow.end((error) => ended.push(error ?? null));
  assert.deepEqual(ended, [null]);
});

test('the receiver confirms once what the copy that was given up had carried, when it has it', () => {
  const flow = newFlow(1_000);
  const [first, second] = [memoryLeg(PRIMARY), memoryLeg(REPLICA)];
  flow.open(first);
  flow.open(second);
  const alone = controlRecord(Record.alone, 10);
  flow.legData(second, Buffer.concat([alone, alone]));
  assert.equal(second.bytes().length, 0);
  flow.legData(first, Buffer.alloc(10));
  flow.legData(second, alone);
  assert.deepEqual(second.bytes(), controlRecord(Record.report, 10, 10));
});

// libuv takes a hangup behind data for an end: net and RepSYN tell one (docs/design.md, "Differences from net").
test('RepFlow: a reset behind data that a paused socket reads later is a reset, after all the data', async (t) => {
  const server = repnet.createServer().listen(0, '127.0.0.1');
  t.after(() => server.close());
  await once(server, 'listening');
  const { port } = server.address();
  const client = repnet.connect({ port, host: '127.0.0.1', replicate: 'flow', peer: 'repnet' });
  client.pause();
  const seen = watch(client);
  client.pause();
  const [stream] = await once(server, 'connection');
  await until(() => repnet.info(client).paired && repnet.info(stream).paired);
  await new Promise((resolve) => stream.write(Buffer.alloc(1_000), resolve));
  stream.resetAndDestroy();
  await once(stream, 'close');
  assert.deepEqual(seen, { bytes: 0, events: [] });
  client.resume();
  await until(() => client.closed);
  assert.deepEqual(seen, { bytes: 1_000, events: ['ECONNRESET', 'failed'] });
});
