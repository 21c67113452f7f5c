/** The state machine without sockets: each transition. (machine-walk-*.test.mjs: every sequence of them to a depth.) */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PRIMARY, REPLICA, ReceiveMachine, SendMachine } from '../dist/flow/machine.js';

const THRESHOLD = 10;
const sender = (begun) => new SendMachine(THRESHOLD, begun);
const states = (tx) => [tx.state, ...tx.copies];

test('a copy that opens alone carries the flow and archives for the other', () => {
  const tx = sender();
  assert.equal(tx.open(PRIMARY), false);
  assert.deepEqual(states(tx), ['ONE_CONN', 'open', 'pending']);
  assert.deepEqual(tx.route(4), { copies: 1, archive: true });
});

test('transition 1: the second copy gets what is archived, and both carry on', () => {
  const tx = sender();
  tx.open(PRIMARY);
  tx.route(4);
  assert.equal(tx.open(REPLICA), true);
  assert.deepEqual(states(tx), ['DUP_CONN', 'open', 'open']);
  assert.deepEqual(tx.route(3), { copies: 3, archive: false });
});

test('transition 2: a copy that fails leaves the flow to the other', () => {
  for (const [lost, kept] of [
    [PRIMARY, REPLICA],
    [REPLICA, PRIMARY],
  ]) {
    const tx = sender();
    tx.open(PRIMARY);
    tx.open(REPLICA);
    tx.lose(lost);
    assert.equal(tx.state, 'CHOSEN');
    assert.equal(tx.chosen, kept);
    assert.deepEqual(tx.route(3), { copies: 1 << kept, archive: false });
  }
});

test('transition 3: a pending copy whose time is over leaves plain TCP', () => {
  const tx = sender();
  tx.open(PRIMARY);
  tx.route(4);
  tx.lose(REPLICA);
  assert.deepEqual(states(tx), ['CHOSEN', 'open', 'gone']);
  assert.equal(tx.archived, false);
});

test('transition 4: too much archived chooses the open copy; a second that comes late may still take part later', () => {
  const tx = sender();
  tx.open(PRIMARY);
  assert.deepEqual(tx.route(11), { copies: 1, archive: false });
  assert.equal(tx.state, 'CHOSEN');
  assert.equal(tx.open(REPLICA), false);
  assert.deepEqual(states(tx), ['CHOSEN', 'open', 'open']);
  assert.equal(tx.newMessage(), true);
  assert.equal(tx.state, 'DUP_CONN');
});

test('transition 4: a first that comes late to a dropped archive can never carry this direction', () => {
  const tx = sender();
  tx.open(REPLICA);
  tx.route(11);
  assert.equal(tx.open(PRIMARY), false);
  assert.deepEqual(states(tx), ['CHOSEN', 'gone', 'open']);
});

test('the open copy is lost while the other is pending: the archive is replayed when that opens', () => {
  const tx = sender();
  tx.open(PRIMARY);
  tx.route(4);
  tx.lose(PRIMARY);
  assert.deepEqual(states(tx), ['ONE_CONN', 'gone', 'pending']);
  assert.deepEqual(tx.route(3), { copies: 0, archive: true });
  assert.equal(tx.open(REPLICA), true);
  assert.deepEqual(states(tx), ['CHOSEN', 'gone', 'open']);
});

test('transitions 5 to 7: without copies the direction has ended', () => {
  const tx = sender();
  tx.open(PRIMARY);
  tx.open(REPLICA);
  tx.lose(PRIMARY);
  tx.lose(REPLICA);
  assert.equal(tx.state, 'ENDED');
  assert.deepEqual(tx.route(1), { copies: 0, archive: false });
});

test('transition 8: a message that outgrows the threshold is carried once, by a first copy that keeps up', () => {
  const tx = sender();
  tx.open(PRIMARY);
  tx.open(REPLICA);
  tx.route(10);
  assert.equal(tx.room, 0);
  tx.report(5, 5, 2);
  assert.equal(tx.verdict, 'keeps up');
  tx.choose();
  assert.deepEqual(tx.route(100), { copies: 1, archive: false });
});

test('transition 8: while the first copy trails both carry the message, in growing steps', () => {
  const tx = sender();
  tx.open(PRIMARY);
  tx.open(REPLICA);
  tx.route(10);
  tx.report(8, 1, 2);
  assert.equal(tx.verdict, 'trails');
  tx.extend();
  assert.deepEqual([tx.room, tx.verdict], [10, undefined]);
  assert.deepEqual(tx.route(10), { copies: 3, archive: false });
  tx.extend();
  assert.equal(tx.room, 20);
});

test('transition 9: the next message is doubled again', () => {
  const tx = sender();
  tx.open(PRIMARY);
  tx.open(REPLICA);
  tx.route(10);
  tx.choose();
  tx.route(50);
  assert.equal(tx.newMessage(), true);
  assert.equal(tx.room, THRESHOLD);
  assert.equal(tx.message, 60);
});

test('a verdict on an earlier message is not one on this', () => {
  const tx = sender();
  tx.open(PRIMARY);
  tx.open(REPLICA);
  tx.route(10);
  tx.newMessage();
  tx.report(10, 0, 2);
  assert.equal(tx.verdict, undefined);
});

test('a receiver that has it all stops the doubling of this message only', () => {
  const tx = sender();
  tx.open(PRIMARY);
  tx.open(REPLICA);
  tx.route(2);
  tx.stop();
  assert.equal(tx.state, 'CHOSEN');
  assert.equal(tx.chosen, PRIMARY);
  assert.equal(tx.newMessage(), true);
});

const receiver = () => {
  const rx = new ReceiveMachine();
  rx.open(PRIMARY);
  rx.open(REPLICA);
  return rx;
};

test('bytes are new once, whichever copy brings them', () => {
  const rx = receiver();
  assert.equal(rx.acceptRecord(0, 5), 0);
  assert.equal(rx.acceptPlain(3), 3);
  assert.equal(rx.acceptPlain(4), 2);
  assert.equal(rx.delivered, 7);
  assert.deepEqual(rx.won, [2, 5]);
  assert.equal(rx.duplicate, 5);
});

test('records ahead of the stream wait for the plain copy to fill the hole', () => {
  const rx = receiver();
  assert.equal(rx.acceptRecord(3, 2), -1);
  rx.keepEarly(3, Buffer.from('de'));
  assert.equal(rx.takeEarly(), undefined);
  rx.acceptPlain(4);
  assert.equal(rx.takeEarly().toString(), 'e');
  assert.deepEqual(rx.won, [4, 1]);
  assert.equal(rx.delivered, 5);
});

test('a bare FIN is no end while the replica is good', () => {
  const rx = receiver();
  rx.acceptPlain(3);
  rx.fin();
  assert.equal(rx.verdict(), 'wait');
  assert.equal(rx.suspect, REPLICA);
  rx.lose(REPLICA);
  assert.equal(rx.verdict(), 'end');
});

test('a declared total ends the stream when it is delivered', () => {
  const rx = receiver();
  rx.acceptPlain(3);
  rx.end(5);
  assert.equal(rx.verdict(), 'open');
  rx.acceptPlain(2);
  assert.equal(rx.verdict(), 'end');
});

test('a FIN below what was announced is a truncation', () => {
  const rx = receiver();
  rx.acceptRecord(0, 5);
  rx.lose(REPLICA);
  rx.acceptPlain(3);
  rx.fin();
  assert.equal(rx.verdict(), 'truncated');
});

test('a hole that no copy can fill is a truncation', () => {
  const rx = receiver();
  rx.alone = 9;
  rx.announce(9);
  rx.acceptPlain(3);
  assert.equal(rx.verdict(), 'wait');
  rx.lose(PRIMARY);
  assert.equal(rx.verdict(), 'truncated');
});
