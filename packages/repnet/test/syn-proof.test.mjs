/**
 * RepSYN: nothing of the application's is on a connection to the second port before the server there has proved that it is the one on
 * the first. Whoever else has that port hears a question at most, and the flow is what it is with net.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import { afterEach, test } from 'node:test';
import { forgetPeers } from '../dist/client/peers.js';
import repnet from '../dist/index.js';
import { ANSWER_BYTES, decodeAnswer, HELLO_BYTES, HelloFlag, Kind, Refusal } from '../dist/wire.js';
import { lostSyns } from './lib/lost-syns.mjs';
import { echoing } from './lib/observe.mjs';
import { answering, dial as flowOf, SECRET } from './lib/secret-flow.mjs';
import { countingServer, hello, raw, settle, until } from './lib/support.mjs';

afterEach(forgetPeers);

const dial = (t, port, options = {}) => flowOf(t, port, { replicate: 'syn', ...options });

/** A server whose life the client has learnt, beside a flow of each kind. */
async function knownServer(t) {
  const a = await countingServer(t, repnet, 0, answering('A'));
  assert.equal(await dial(t, a.port), 'A');
  await settle();
  return a;
}

/** Learns: asks until a race has begun. */
async function racing(t, port) {
  await until(async () => {
    const { copiesIssued } = repnet.stats();
    assert.equal(await dial(t, port), 'A');
    await settle();
    return repnet.stats().copiesIssued > copiesIssued;
  }, 'the server is known by its life');
}

test('of a known server the second connection wins when the first one has lost its SYN, and the application sees one flow', async (t) => {
  const a = await knownServer(t);
  await racing(t, a.port);
  const { accepted } = a;
  const { synWonBySecond } = repnet.stats();
  await lostSyns(t, (port) => port === a.port);
  assert.equal(await dial(t, a.port), 'A');
  assert.equal(repnet.stats().synWonBySecond, synWonBySecond + 1);
  await settle();
  assert.equal(a.accepted, accepted + 1);
});

test('counters of the winner count the application’s bytes alone', async (t) => {
  const a = await countingServer(t, repnet, 0, echoing);
  await lostSyns(t, (port) => port === a.port);
  const socket = repnet.connect({ host: '127.0.0.1', port: a.port, replicate: 'syn', peer: 'repnet' });
  t.after(() => socket.destroy());
  socket.write(SECRET);
  await once(socket, 'data');
  assert.deepEqual([socket.bytesRead, socket.bytesWritten], [SECRET.length, SECRET.length]);
  const [accepted] = a.sockets;
  assert.deepEqual([accepted.bytesRead, accepted.bytesWritten], [SECRET.length, SECRET.length]);
  assert.equal(socket.remotePort, a.port);
});

/** Who has the two ports after A has stopped: listeners on the first and the second. */
const AFTER = {
  'A has stopped': [undefined, undefined],
  'A has stopped, and a plain service has its second port': [
    undefined,
    (t, port, serve) => countingServer(t, net, port, serve),
  ],
  'A is plain again, and another plain service has its second port': [
    (t, port) => countingServer(t, net, port, answering('A')),
    (t, port, serve) => countingServer(t, net, port, serve),
  ],
  'another server of this library has A’s second port for its first': [
    undefined,
    (t, port, serve) => countingServer(t, repnet, port, serve),
  ],
  'A is plain again, and another of this library has its second port for its first': [
    (t, port) => countingServer(t, net, port, answering('A')),
    (t, port, serve) => countingServer(t, repnet, port, serve),
  ],
  'a silent service has A’s second port': [
    (t, port) => countingServer(t, net, port, answering('A')),
    (t, port) => countingServer(t, net, port, () => {}),
  ],
  'A has begun anew': [(t, port) => countingServer(t, repnet, port, answering('A')), undefined],
};

for (const [what, [first, second]] of Object.entries(AFTER))
  for (const peer of ['auto', 'repnet'])
    test(`nobody else hears what is for A, and the flow is as with net: ${what} (peer: '${peer}')`, async (t) => {
      const a = await knownServer(t);
      if (peer === 'auto') await racing(t, a.port);
      await a.close();
      const heard = [];
      await first?.(t, a.port);
      await second?.(t, a.port + 1, answering('B', heard));
      const plain = await dial(t, a.port, { api: net });
      assert.equal(await dial(t, a.port, { peer }), plain);
      await settle();
      assert.equal(Buffer.concat(heard).includes(SECRET), false);
    });

for (const [what, second] of [
  ['a plain service', (t, port, serve) => countingServer(t, net, port, serve)],
  ['another server of this library', (t, port, serve) => countingServer(t, repnet, port, serve)],
])
  test(`a flow waits for its first connection, which has lost its SYN, while ${what} has the second port`, async (t) => {
    const a = await knownServer(t);
    await racing(t, a.port);
    await a.close();
    const heard = [];
    await countingServer(t, net, a.port, answering('A'));
    await second(t, a.port + 1, answering('B', heard));
    const syns = await lostSyns(t, (port) => port === a.port);
    const said = dial(t, a.port);
    await until(() => syns.lost.length > 0, 'the SYN is lost');
    await settle();
    assert.equal(Buffer.concat(heard).includes(SECRET), false);
    syns.arrive();
    assert.equal(await said, 'A');
    assert.equal(Buffer.concat(heard).includes(SECRET), false);
  });

test('a process that has taken over both ports is not taken for the one that was known', async (t) => {
  const a = await knownServer(t);
  await racing(t, a.port);
  await a.close();
  const again = await countingServer(t, repnet, a.port, answering('A'));
  const { synWonBySecond } = repnet.stats();
  const syns = await lostSyns(t, (port) => port === again.port);
  const said = dial(t, a.port);
  await until(() => syns.lost.length > 0, 'the SYN is lost');
  await settle();
  syns.arrive();
  assert.equal(await said, 'A');
  assert.equal(repnet.stats().synWonBySecond, synWonBySecond);
  await racing(t, again.port);
});

/** The answer to a question of `kind` on the second port. */
async function ask(t, port, kind, fields) {
  const second = await raw(t, port + 1);
  second.socket.write(hello(second, port, { kind, ...fields }));
  await until(() => second.bytes.length >= ANSWER_BYTES || second.closed, 'an answer');
  return { second, answer: decodeAnswer(second.bytes) };
}

test('a server tells its life beside a first connection that it has accepted, and beside no other', async (t) => {
  const { port } = await countingServer(t, repnet);
  const first = await raw(t, port);
  await settle();
  const beside = { flags: HelloFlag.beside, sourceAddress: '127.0.0.1' };
  const { answer: told } = await ask(t, port, Kind.probe, { ...beside, sourcePort: first.localPort });
  assert.equal(told.life.length, 6);
  for (const fields of [
    { ...beside, sourcePort: first.localPort + 1 },
    { ...beside, sourceAddress: '127.0.0.9', sourcePort: first.localPort },
    { flags: 0, sourceAddress: '127.0.0.1', sourcePort: first.localPort },
  ])
    assert.equal((await ask(t, port, Kind.probe, fields)).answer.life, undefined);
  const { answer: proof } = await ask(t, port, Kind.prove, {});
  assert.deepEqual([proof.refusal, proof.life], [0, told.life]);
});

test('a connection that has had its proof is no flow before it says the winner’s hello', async (t) => {
  const seen = await countingServer(t, repnet);
  const { second } = await ask(t, seen.port, Kind.prove, {});
  await settle();
  assert.equal(seen.accepted, 0);
  second.socket.write(Buffer.concat([hello(second, seen.port, { kind: Kind.raw }), Buffer.from('now')]));
  await until(() => second.bytes.length > ANSWER_BYTES, 'an echo');
  assert.equal(String(second.bytes.subarray(ANSWER_BYTES)), 'now');
  assert.equal(seen.accepted, 1);
});

test('a proof for another first port is refused', async (t) => {
  const { port } = await countingServer(t, repnet);
  const { answer } = await ask(t, port, Kind.prove, { targetPort: port - 1 });
  assert.deepEqual([answer.refusal, answer.life], [Refusal.mismatch, undefined]);
});

test('a question and the winner’s hello in one piece are read one after the other', async (t) => {
  const seen = await countingServer(t, repnet);
  const second = await raw(t, seen.port + 1);
  const both = [Kind.prove, Kind.raw].map((kind) => hello(second, seen.port, { kind }));
  assert.equal(both[0].length, HELLO_BYTES);
  second.socket.write(Buffer.concat([...both, Buffer.from('now')]));
  await until(() => second.bytes.length >= ANSWER_BYTES + 3, 'an echo');
  assert.equal(seen.accepted, 1);
});
