/** The state machine that closes a flow, without sockets: every transition of docs/design.md. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PRIMARY, REPLICA } from '../dist/flow/machine.js';
import { Script } from './lib/closing-script.mjs';

/** Both streams are over, and both connections have brought the peer's end. */
const ALL_DONE = { readAll: true, wroteAll: true, sentAll: true, done: [true, true] };
/** The application has read last: bytes may be unread. */
const UNREAD = { turned: true };
/** The first connection is still to come; the second has carried all so far. */
const FIRST_PENDING = { legs: [false, true], copies: ['pending', 'open'], archived: true };
/** The second connection is established and unanswered. */
const SECOND_UNANSWERED = { copies: ['open', 'pending'], archived: true, unheard: true };
const FIRST_ONLY = { legs: [true, false], copies: ['open', 'gone'] };
const SECOND_ONLY = { legs: [false, true], copies: ['gone', 'open'] };

/** The actions without those that every close begins with. */
const decided = (actions) => actions.slice(actions.findIndex((action) => action.startsWith('decide')));

// -------------------------------------------------------------------- open

test('open: a flow whose streams are not over ends both in order and lingers', () => {
  const flow = new Script();
  assert.equal(flow.state, 'open');
  assert.deepEqual(flow.on('close', { reset: false }), [
    'abandonDial first',
    'abandonDial second',
    'stopSending',
    'decide',
    'close first',
    'say end',
    'finish fin',
    'dropForSecond',
    'linger carrying',
  ]);
  assert.equal(flow.state, 'lingering');
});

test('open: events before the close do nothing', () => {
  for (const type of ['drained', 'exit', 'ended', 'gone', 'written', 'stuck', 'timeUp']) {
    const flow = new Script();
    assert.deepEqual(flow.on(type, { copy: PRIMARY, failed: true }), [], type);
    assert.equal(flow.state, 'open', type);
  }
});

test('open: a reset aborts the first connection and says so on the second', () => {
  const flow = new Script();
  assert.deepEqual(decided(flow.on('close', { reset: true })), [
    'decide reset',
    'abort first',
    'say reset',
    'finish fin',
    'dropForSecond',
    'linger word',
  ]);
  assert.equal(flow.state, 'lingering');
});

test('open: a reset of a flow on its first connection alone closes it at once', () => {
  const flow = new Script(FIRST_ONLY);
  assert.deepEqual(decided(flow.on('close', { reset: true })), [
    'decide reset',
    'abort first',
    'dropForSecond',
    'abandonDial first',
    'settle inOrder',
  ]);
  assert.equal(flow.state, 'closed');
});

test('open: a flow without a connection closes at once', () => {
  const flow = new Script({ legs: [false, false], copies: ['gone', 'gone'] });
  assert.equal(decided(flow.on('close', { reset: false })).at(-1), 'settle inOrder');
  assert.equal(flow.state, 'closed');
});

test('open: a stream that has ended is not ended again', () => {
  const flow = new Script({ wroteAll: true, sentAll: true });
  const actions = flow.on('close', { reset: false });
  assert.equal(actions.includes('say end'), false);
});

test('open: a first connection whose stream is sent closes when the system has all of it', () => {
  const flow = new Script({ ...FIRST_ONLY, wroteAll: true, sentAll: true });
  assert.deepEqual(decided(flow.on('close', { reset: false })), [
    'decide',
    'awaitWritten',
    'dropForSecond',
    'linger carrying',
  ]);
  assert.equal(flow.state, 'lingering');
});

test('open: with both streams over, a connection that has not brought the end is read to it', () => {
  const flow = new Script({ ...ALL_DONE, done: [true, false] });
  assert.deepEqual(decided(flow.on('close', { reset: false })), [
    'decide',
    'awaitWritten',
    'readToEnd second',
    'dropForSecond',
    'linger carrying',
  ]);
});

test('open: with both streams over, a first connection without our end is aborted', () => {
  const flow = new Script({ ...ALL_DONE, done: [false, true], copies: ['gone', 'open'] });
  assert.equal(decided(flow.on('close', { reset: false }))[1], 'abort first');
});

test('open: with both streams over by records, the client sends no FIN on the second connection', () => {
  const client = new Script({ ...ALL_DONE, ...SECOND_ONLY });
  assert.equal(decided(client.on('close', { reset: false }))[1], 'finish');
  const server = new Script({ ...ALL_DONE, ...SECOND_ONLY, isClient: false });
  assert.equal(decided(server.on('close', { reset: false }))[1], 'finish fin');
});

test('open: a server whose first connection never came tells the client that the second is alone', () => {
  const flow = new Script({ ...ALL_DONE, ...FIRST_PENDING, isClient: false, archived: false });
  assert.deepEqual(decided(flow.on('close', { reset: false })).slice(0, 3), [
    'decide',
    'say alone',
    'finish fin',
  ]);
});

test('open: a client keeps the archive for a first connection that is still to come', () => {
  const flow = new Script(FIRST_PENDING);
  const actions = flow.on('close', { reset: false });
  assert.equal(actions.includes('keepForFirst'), true);
  assert.equal(actions.includes('abandonDial first'), false, 'ended, it would mislead the server');
});

test('open: a reset gives up a first connection that is still to come', () => {
  const flow = new Script(FIRST_PENDING);
  const actions = flow.on('close', { reset: true });
  assert.equal(actions.includes('keepForFirst'), false);
  assert.equal(actions.includes('abandonDial first'), true);
});

test('open: an unanswered second connection is kept, with the archive', () => {
  const flow = new Script(SECOND_UNANSWERED);
  assert.deepEqual(flow.on('close', { reset: false }), [
    'abandonDial first',
    'abandonDial second',
    'keepForSecond',
    'stopSending',
    'decide',
    'close first',
    'keepSecond',
    'dropForSecond',
    'abandonDial first',
    'settle inOrder',
  ]);
});

test('open: an unanswered second connection is closed in order when the process exits', () => {
  const flow = new Script({ ...SECOND_UNANSWERED, exiting: true });
  assert.equal(flow.on('close', { reset: false }).includes('close second'), true);
});

test('open: a pending second connection that has been heard from is aborted', () => {
  const flow = new Script({ ...SECOND_UNANSWERED, unheard: false });
  assert.equal(flow.on('close', { reset: false }).includes('abort second'), true);
});

test('open: a pending connection of a flow that is reset is aborted, also when the process exits', () => {
  const flow = new Script({ ...SECOND_UNANSWERED, exiting: true });
  assert.equal(flow.on('close', { reset: true }).includes('abort second'), true);
});

test('open: a first connection that carries nothing is set aside until the server has joined the two', () => {
  const flow = new Script({ copies: ['gone', 'open'], joined: false });
  assert.deepEqual(decided(flow.on('close', { reset: false })), [
    'decide',
    'setAside',
    'say end',
    'finish fin',
    'dropForSecond',
    'linger carrying',
  ]);
  assert.deepEqual(flow.lose(REPLICA), ['abandonDial first', 'settle']);
  const joined = new Script({ copies: ['gone', 'open'], joined: false });
  joined.on('close', { reset: false });
  joined.facts.joined = true;
  assert.deepEqual(joined.lose(REPLICA), ['abandonDial first', 'settle inOrder']);
});

test('open: the second connection is watched where the first has all', () => {
  const flow = new Script({ wroteAll: true, sentAll: true, firstHasAll: true });
  assert.equal(flow.on('close', { reset: false }).at(-1), 'watchSecond');
});

test('open: what may be unread is read first', () => {
  const flow = new Script(UNREAD);
  assert.deepEqual(flow.on('close', { reset: false }), [
    'abandonDial first',
    'abandonDial second',
    'stopSending',
    'drain',
  ]);
  assert.equal(flow.state, 'draining');
});

test('open: nothing is read first where nothing can be unread or the peer is to have a reply', () => {
  const cases = {
    'a reset': [{}, true],
    'the peer has ended': [{ readAll: true }, false],
    'the application has ended': [{ wroteAll: true }, false],
    'a reply was written': [{ turned: false }, false],
    'the library closes the flow': [{ destroyed: false }, false],
    'no connection is left': [{ legs: [false, false], copies: ['gone', 'gone'] }, false],
  };
  for (const [why, [facts, reset]] of Object.entries(cases)) {
    const flow = new Script({ ...UNREAD, ...facts });
    assert.equal(flow.on('close', { reset }).includes('drain'), false, why);
  }
});

// -------------------------------------------------------------------- draining

const draining = (facts = {}) => {
  const flow = new Script({ ...UNREAD, ...facts });
  flow.on('close', { reset: false });
  assert.equal(flow.state, 'draining');
  return flow;
};

test('draining: nothing unread ends the flow in order', () => {
  const flow = draining();
  assert.deepEqual(flow.on('drained', { unread: false }), [
    'decide',
    'close first',
    'say end',
    'finish fin',
    'dropForSecond',
    'linger carrying',
  ]);
  assert.equal(flow.state, 'lingering');
});

test('draining: unread bytes reset the flow', () => {
  const flow = draining();
  assert.equal(flow.on('drained', { unread: true })[0], 'decide reset');
  assert.equal(flow.state, 'lingering');
});

test('draining: unread bytes on a flow of one plain connection reset and close it', () => {
  const flow = draining(FIRST_ONLY);
  assert.deepEqual(flow.on('drained', { unread: true }).slice(0, 2), ['decide reset', 'abort first']);
  assert.equal(flow.state, 'closed');
});

test('draining: the exit of the process ends the flow in order, without waiting', () => {
  const flow = draining();
  assert.equal(flow.on('exit')[0], 'decide');
  assert.equal(flow.state, 'lingering');
  assert.deepEqual(flow.on('drained', { unread: true }), [], 'the decision is made');
});

test('draining: a connection that is lost waits for the decision', () => {
  const flow = draining(SECOND_ONLY);
  assert.deepEqual(flow.lose(REPLICA), []);
  assert.equal(flow.state, 'draining');
  assert.equal(flow.on('drained', { unread: false }).at(-1), 'settle inOrder');
  assert.equal(flow.state, 'closed');
});

test('draining: the end of the peer changes nothing', () => {
  const flow = draining();
  assert.deepEqual(flow.on('ended', { copy: PRIMARY }), []);
  assert.equal(flow.state, 'draining');
});

test('draining: a second connection that fails leaves the archive to the first, which is still to come', () => {
  const flow = draining(FIRST_PENDING);
  flow.lose(REPLICA, true);
  assert.equal(flow.on('drained', { unread: false }).includes('abandonDial first'), false);
  assert.equal(flow.state, 'closed');
});

test('draining: a second connection that ends well makes the first, which is still to come, needless', () => {
  const flow = draining(FIRST_PENDING);
  flow.lose(REPLICA, false);
  assert.equal(flow.on('drained', { unread: false }).includes('abandonDial first'), true);
});

// -------------------------------------------------------------------- lingering

const lingering = (facts = {}, reset = false) => {
  const flow = new Script(facts);
  flow.on('close', { reset });
  assert.equal(flow.state, 'lingering');
  return flow;
};

test('lingering: a second connection that has brought the end is finished, once', () => {
  const flow = lingering({ ...ALL_DONE, ...SECOND_ONLY, done: [false, false], isClient: false });
  flow.facts.done = [false, true];
  assert.deepEqual(flow.on('ended', { copy: REPLICA }), ['finish fin']);
  assert.deepEqual(flow.on('ended', { copy: REPLICA }), []);
  assert.equal(flow.state, 'lingering');
});

test('lingering: a first connection that has brought the end closes when the system has all of it', () => {
  const flow = lingering({ ...ALL_DONE, ...FIRST_ONLY, done: [false, false] });
  assert.deepEqual(flow.on('ended', { copy: PRIMARY }), ['awaitWritten']);
  assert.deepEqual(flow.on('written'), ['close first', 'abandonDial first', 'settle inOrder']);
  assert.equal(flow.state, 'closed');
});

test('lingering: the end on a connection that is gone does nothing', () => {
  const flow = lingering({ ...ALL_DONE, ...SECOND_ONLY });
  assert.deepEqual(flow.on('ended', { copy: PRIMARY }), []);
});

test('lingering: the last connection that is gone closes the flow', () => {
  const flow = lingering({ ...ALL_DONE, done: [false, false] });
  assert.deepEqual(flow.lose(PRIMARY), []);
  assert.equal(flow.state, 'lingering');
  assert.deepEqual(flow.lose(REPLICA), ['abandonDial first', 'settle inOrder']);
  assert.equal(flow.state, 'closed');
});

test('lingering: a second connection that fails leaves the archive to the first, which is still to come', () => {
  const flow = lingering(FIRST_PENDING);
  assert.deepEqual(flow.lose(REPLICA, true), ['settle inOrder']);
  const well = lingering(FIRST_PENDING);
  assert.deepEqual(well.lose(REPLICA, false), ['abandonDial first', 'settle inOrder']);
});

test('lingering: a first connection that the system has taken closes, and the second goes on', () => {
  const flow = lingering({ wroteAll: true, sentAll: true });
  assert.deepEqual(flow.on('written'), ['close first']);
  assert.equal(flow.state, 'lingering');
});

test('lingering: a first connection that was lost is not closed when its writes are reported', () => {
  const flow = lingering({ wroteAll: true, sentAll: true });
  flow.lose(PRIMARY);
  assert.deepEqual(flow.on('written'), []);
});

test('lingering: a second connection that does not move is closed', () => {
  const flow = lingering({ wroteAll: true, sentAll: true, firstHasAll: true });
  assert.deepEqual(flow.on('stuck'), ['close second']);
  assert.deepEqual(flow.on('written'), ['close first', 'abandonDial first', 'settle inOrder']);
  assert.deepEqual(flow.on('stuck'), [], 'nothing is left');
});

test('lingering: when the time is up connections that carry our end close, the others are aborted', () => {
  const flow = lingering({ ...ALL_DONE, done: [false, false] });
  flow.facts.copies = ['open', 'gone'];
  assert.deepEqual(flow.on('timeUp'), ['close first', 'abort second', 'abandonDial first', 'settle inOrder']);
  assert.equal(flow.state, 'closed');
});

test('lingering: when the time is up all connections close in order if the option asks for that', () => {
  const flow = lingering({ ...ALL_DONE, done: [false, false], inOrder: true });
  flow.facts.copies = ['open', 'gone'];
  assert.deepEqual(flow.on('timeUp').slice(0, 2), ['close first', 'close second']);
});

test('lingering: when the time is up the second connection of a flow that was reset is aborted', () => {
  const flow = lingering({ inOrder: true }, true);
  assert.deepEqual(flow.on('timeUp'), ['abort second', 'abandonDial first', 'settle inOrder']);
});

test('lingering: the exit of the process, a second close and a late drain change nothing', () => {
  const flow = lingering();
  assert.deepEqual(flow.on('exit'), []);
  assert.deepEqual(flow.on('close', { reset: true }), []);
  assert.deepEqual(flow.on('drained', { unread: true }), []);
  assert.equal(flow.state, 'lingering');
});

// -------------------------------------------------------------------- closed

test('closed: no event does anything', () => {
  for (const type of ['close', 'drained', 'exit', 'ended', 'gone', 'written', 'stuck', 'timeUp']) {
    const flow = new Script(FIRST_ONLY);
    flow.on('close', { reset: true });
    assert.deepEqual(flow.on(type, { copy: PRIMARY, reset: true, failed: true, unread: true }), [], type);
    assert.equal(flow.state, 'closed', type);
  }
});
