/** The parts of dialling a flow, each by itself: where it goes, what it says first, how long the second waits, what it learns of the server. */
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { chooseDelay, forgetTimes, Hedge } from '../dist/client/hedge.js';
import { flowHello } from '../dist/client/hello.js';
import { forgetPeers, recallPeer, rememberPeer, TRANSLATED } from '../dist/client/peers.js';
import { Destination } from '../dist/client/resolution.js';
import {
  noteAnswer,
  noteNoAnswer,
  noteSilence,
  noteUnanswered,
  noteUnreachable,
  serverKey,
} from '../dist/client/server-report.js';
import repnet from '../dist/index.js';
import { decodeHello, Kind, Refusal } from '../dist/wire.js';
import { movedClock } from './lib/moved-clock.mjs';

const PORT = 7000;

const targetOf = (replication = {}, host = '10.0.0.1') => ({
  mode: 'flow',
  net: { host, port: PORT },
  replication: {
    replicaPort: PORT + 1,
    threshold: 1_000,
    copyDelay: 0,
    pairTimeout: 300,
    ...replication,
  },
});

beforeEach(() => {
  forgetPeers();
  forgetTimes();
  repnet.resetStats();
});

test('an address is where both connections go, and nobody is asked for it', () => {
  const destination = new Destination('10.0.0.1', () => assert.fail('asked'));
  assert.equal(destination.address, '10.0.0.1');
  assert.deepEqual(destination.options, {});
  assert.equal(destination.undecided, false);
  assert.equal(destination.resolved(null, '10.0.0.2'), false);
  destination.chosen('10.0.0.3');
  assert.equal(destination.address, '10.0.0.1');
});

/** A name that has been looked up once, by the application's resolver. */
function named(result) {
  let asked = 0;
  const destination = new Destination('service.test', (_host, _options, done) => {
    asked++;
    done(null, result);
  });
  destination.options.lookup('service.test', { all: true }, () => {});
  return { destination, asked: () => asked };
}

test('of a name with one address that is decided when it is resolved; it is asked for once', async () => {
  const { destination, asked } = named([{ address: '10.0.0.5', family: 4 }]);
  assert.equal(destination.address, undefined);
  assert.equal(destination.resolved(new Error('ENOTFOUND'), undefined), false);
  assert.equal(destination.resolved(null, '10.0.0.5'), true);
  assert.equal(destination.address, '10.0.0.5');
  const again = await new Promise((resolve) =>
    destination.options.lookup('service.test', { all: true }, (_error, all) => resolve(all)),
  );
  assert.deepEqual(again, [{ address: '10.0.0.5', family: 4 }]);
  assert.equal(asked(), 1);
});

test('of a name with several the first connection decides it, if the system still knows where it went', () => {
  const { destination } = named([
    { address: '10.0.0.5', family: 4 },
    { address: '10.0.0.6', family: 4 },
  ]);
  assert.equal(destination.undecided, true);
  assert.equal(destination.resolved(null, '10.0.0.5'), false);
  destination.chosen(undefined);
  assert.equal(destination.address, undefined);
  destination.chosen('10.0.0.6');
  assert.equal(destination.address, '10.0.0.6');
  assert.equal(destination.undecided, false);
});

test('what the second connection says first: the flow as both ends see it', () => {
  const leg = { localAddress: '10.0.0.9', localPort: 40_001, remoteAddress: '10.0.0.1' };
  const [said, other] = [1, 2].map(() => decodeHello(flowHello(targetOf({ copyDelay: 20 }), leg)));
  assert.notDeepEqual(said.token, other.token, 'each flow has its own');
  assert.deepEqual(
    { ...said, token: undefined, version: undefined },
    {
      kind: Kind.replica,
      flags: 0,
      threshold: 1_000,
      token: undefined,
      sourceAddress: '10.0.0.9',
      sourcePort: 40_001,
      targetAddress: '10.0.0.1',
      targetPort: PORT,
      patience: 320,
      version: undefined,
    },
  );
});

test('hedged, the second connection is due after the delay and not before, each time that the first begins; not when that is over', () => {
  const clock = movedClock();
  try {
    const hedge = new Hedge(targetOf({ copyDelay: 200 }));
    let due = 0;
    for (const time of [1, 2]) {
      hedge.begin(() => due++);
      assert.equal(hedge.due, false);
      clock.tick(199);
      assert.equal(due, time - 1);
      clock.tick(1);
      assert.equal(due, time);
      assert.equal(hedge.due, true);
    }
    hedge.begin(() => due++);
    hedge.stop();
    clock.tick(1_000);
    assert.equal(due, 2);
  } finally {
    clock.stop();
  }
});

test('the time to the first bytes counts for the delay of later flows to the same place', () => {
  const adaptive = () => targetOf({ copyDelay: 500, quantile: 0.5 });
  const before = adaptive();
  chooseDelay(before);
  assert.equal(before.replication.copyDelay, 500);
  for (let n = 0; n < 30; n++) {
    const hedge = new Hedge(adaptive());
    hedge.begin(() => {});
    hedge.answered();
    hedge.stop();
  }
  const after = adaptive();
  chooseDelay(after);
  assert.ok(after.replication.copyDelay < 500);
});

const known = (target) => recallPeer(serverKey(target));
const answer = (fields = {}) => ({
  refusal: Refusal.none,
  flags: 0,
  threshold: 5,
  port: PORT,
  version: 2,
  ...fields,
});

test('a server that answers is of this library; for another first port only if it has joined the flow', () => {
  const target = targetOf();
  noteAnswer(target, answer({ flags: 2 }));
  assert.deepEqual([known(target).kind, known(target).flags, known(target).threshold], ['repnet', 2, 5]);
  noteAnswer(target, answer({ refusal: Refusal.late }));
  assert.equal(known(target).kind, 'repnet');
  noteAnswer(target, answer({ port: 1 }));
  assert.deepEqual([known(target).kind, known(target).flags], ['repnet', TRANSLATED]);
  noteAnswer(target, answer({ port: 1, refusal: Refusal.unknown }));
  assert.equal(known(target).kind, 'other');
});

test('what comes in place of an answer, silence and a refused port say what an unknown server is; of a known one they are an accident', () => {
  const repnetPeer = { kind: 'repnet' };
  for (const [note, kind] of [
    [noteNoAnswer, 'plain'],
    [(target) => noteSilence(target, undefined), 'silent'],
    [(target) => noteUnreachable(target, undefined, true), 'plain'],
  ]) {
    forgetPeers();
    note(targetOf());
    assert.equal(known(targetOf()).kind, kind);
  }
  assert.equal(repnet.stats().foreignPeers, 3);
  forgetPeers();
  noteSilence(targetOf(), repnetPeer);
  assert.equal(known(targetOf()), undefined);
  rememberPeer(serverKey(targetOf()), 'repnet');
  noteUnreachable(targetOf(), repnetPeer, true);
  assert.equal(known(targetOf()).kind, 'repnet', 'once');
  assert.equal(repnet.stats().foreignPeers, 3);
});

test('three second connections in a row that fail unanswered end what is known of a server', () => {
  const target = targetOf();
  for (const fail of [
    () => noteUnanswered(target),
    () => noteUnreachable(target, { kind: 'repnet' }, false),
  ]) {
    rememberPeer(serverKey(target), 'repnet');
    for (let n = 0; n < 2; n++) fail();
    assert.equal(known(target).kind, 'repnet');
    fail();
    assert.equal(known(target), undefined);
  }
});
