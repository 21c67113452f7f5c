/**
 * RepFlow: nothing of the application's is on a second connection before the server there has said that it has the first, or that it is
 * the process that is known. Whoever else has that port hears a hello at most, and the flow is what it is with net.
 */
import assert from 'node:assert/strict';
import net from 'node:net';
import { afterEach, test } from 'node:test';
import { forgetPeers, noteLife, peerKey, recallPeer, rememberPeer } from '../dist/client/peers.js';
import { isProved } from '../dist/client/server-report.js';
import repnet from '../dist/index.js';
import {
  ANSWER_BYTES,
  AnswerFlag,
  decodeAnswer,
  HELLO_BYTES,
  Kind,
  looksLikeHello,
  Refusal,
} from '../dist/wire.js';
import { lostSyns } from './lib/lost-syns.mjs';
import { answering, dial as flowOf } from './lib/secret-flow.mjs';
import { countingServer, hello, raw, settle, until } from './lib/support.mjs';

afterEach(forgetPeers);

const dial = (t, port, options = {}) => flowOf(t, port, { replicate: 'flow', ...options });

/** A server that is known, with its life: it has joined a flow. */
async function knownServer(t) {
  const a = await countingServer(t, repnet, 0, answering('A'));
  const { flowsPaired } = repnet.stats();
  await until(async () => {
    assert.equal(await dial(t, a.port), 'A');
    return repnet.stats().flowsPaired > flowsPaired;
  }, 'a flow is joined');
  return a;
}

test('a server tells its life to the second connection of a flow that it has joined', async (t) => {
  const { port } = await knownServer(t);
  assert.equal(recallPeer(peerKey('127.0.0.1', port, port + 1)).lives.length, 1);
});

/** Who has the two ports after A has stopped: listeners on the first and the second. */
const AFTER = {
  'a plain service has its second port': [undefined, net],
  'A is plain again, and another plain service has its second port': [net, net],
  'another server of this library has its second port for its first': [undefined, repnet],
  'A is plain again, and nobody has its second port': [net, undefined],
  'A has begun anew': [repnet, undefined],
  'nobody is there': [undefined, undefined],
  'A is plain again, and another of this library has its second port for its first': [net, repnet],
};

for (const [what, [first, second]] of Object.entries(AFTER))
  for (const peer of ['auto', 'repnet'])
    test(`who has the port of a server that has stopped hears a hello and no more: ${what} (peer: '${peer}')`, async (t) => {
      const a = await knownServer(t);
      await a.close();
      const heard = [];
      if (first !== undefined) await countingServer(t, first, a.port, answering('A'));
      if (second !== undefined) await countingServer(t, second, a.port + 1, answering('B', heard));
      const plain = await dial(t, a.port, { api: net });
      assert.equal(await dial(t, a.port, { peer }), plain);
      const all = Buffer.concat(heard);
      assert.ok(all.length <= HELLO_BYTES && (all.length === 0 || looksLikeHello(all)), String(all));
    });

/** The server has listened for long enough to begin flows by their second connections. */
async function grownUp(t, { port }) {
  await until(async () => {
    const second = await raw(t, port + 1);
    second.socket.write(hello(second, port, { kind: Kind.replica, patience: 1 }));
    await until(() => second.bytes.length >= ANSWER_BYTES, 'an answer');
    second.socket.destroy();
    return decodeAnswer(second.bytes).refusal === Refusal.none;
  }, 'a flow begins by its second connection');
}

const QUICK = { waitTimeout: 100, pairTimeout: 100 };
function quickly(t) {
  const { waitTimeout, pairTimeout } = repnet.defaults;
  t.after(() => Object.assign(repnet.defaults, { waitTimeout, pairTimeout }));
  Object.assign(repnet.defaults, QUICK);
}

test('of a server that lives its known life the second connection carries a flow whose first SYN is lost', async (t) => {
  quickly(t);
  const a = await knownServer(t);
  await grownUp(t, a);
  await lostSyns(t, (port) => port === a.port);
  assert.equal(await dial(t, a.port), 'A');
});

test('a process that has taken over both ports hears nothing on the second before it has the first connection', async (t) => {
  quickly(t);
  const a = await knownServer(t);
  await a.close();
  const heard = [];
  const again = await countingServer(t, repnet, a.port, answering('A', heard));
  await grownUp(t, again);
  const { accepted } = again;
  const syns = await lostSyns(t, (port) => port === again.port);
  const said = dial(t, a.port);
  await until(() => again.accepted > accepted, 'a flow has begun by its second connection');
  await settle();
  assert.equal(heard.length, 0);
  syns.arrive();
  assert.equal(await said, 'A');
  assert.equal(again.accepted, accepted + 1);
});

test('a server whose first connections are always the slower ones is known after the first flow', async (t) => {
  const a = await countingServer(t, repnet, 0, answering('A'));
  await grownUp(t, a);
  forgetPeers();
  const { accepted } = a;
  const syns = await lostSyns(t, (port) => port === a.port);
  const socket = repnet.connect({ host: '127.0.0.1', port: a.port, replicate: 'flow' });
  t.after(() => socket.destroy());
  await until(() => a.accepted > accepted, 'the flow has begun by its second connection');
  await settle();
  syns.arrive();
  await until(
    () => recallPeer(peerKey('127.0.0.1', a.port, a.port + 1))?.lives.length === 1,
    'it tells its life',
  );
});

const target = { net: { host: 'h', port: 7 }, replication: { replicaPort: 8 } };
const KEY = peerKey('h', 7, 8);
const AT = '10.0.0.1';
const [known, another] = [1, 2].map((n) => Buffer.alloc(6, n));
const { joined } = AnswerFlag;
const proves = (answer, vouched = false) => isProved(target, AT, { flags: 0, port: 7, ...answer }, vouched);

/** [what the server says, is a life known, does the application vouch] */
const PROOFS = [
  ['the life that is known', { life: known }, true, false],
  ['the first connection, and a life that is not known yet', { life: another, flags: joined }, false, false],
  ['the first connection, and another life than is known', { life: another, flags: joined }, true, false],
  ['the first port, for which the application vouches', { life: another }, false, true],
];
const NO_PROOFS = [
  ['another life than is known', { life: another }, true, false],
  ['another life than is known, though the application vouches', { life: another }, true, true],
  ['a life where none is known', { life: another }, false, false],
  ['another first port, though the application vouches', { life: another, port: 9 }, false, true],
  ['no life, as of earlier builds', {}, true, false],
  ['the first connection and no life', { flags: joined }, false, false],
];

const proved = ([, answer, isKnown, vouched]) => {
  rememberPeer(KEY, 'repnet');
  if (isKnown) noteLife(KEY, AT, known);
  return proves(answer, vouched);
};
for (const each of PROOFS) test(`a proof: ${each[0]}`, () => assert.equal(proved(each), true));
for (const each of NO_PROOFS) test(`no proof: ${each[0]}`, () => assert.equal(proved(each), false));

test('a life is known at its own address alone', () => {
  rememberPeer(KEY, 'repnet');
  noteLife(KEY, '10.0.0.2', known);
  assert.equal(proves({ life: known }), false);
});

test('who proves to be another is not known by its earlier life any more, and is by the new one from its next flow on', () => {
  rememberPeer(KEY, 'repnet');
  noteLife(KEY, AT, known);
  proves({ life: another });
  assert.equal(proves({ life: known }), false);
  proves({ life: another, flags: joined });
  assert.equal(proves({ life: another }), true);
});
