/**
 * Hedged (`copyDelay` > 0) and the first connection really slow: its SYNs are lost. The second starts at the delay and not before, by a
 * clock that the test moves.
 */
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import repnet from '../dist/index.js';
import { childServer } from './lib/full-queue.mjs';
import { lostSyns } from './lib/lost-syns.mjs';
import { movedClock } from './lib/moved-clock.mjs';
import { settle, until } from './lib/support.mjs';

const HOST = '127.0.0.1';
// Together less than the server remembers a flow.
const COPY_DELAY = 200;
const PAIR_TIMEOUT = 150;

beforeEach(() => {
  repnet.resetStats();
});

/** Dials with the first connection's SYNs lost, moves the clock to the delay, and lets the flow bring a reply. */
async function slowFirst(t, api, offset, options, meanwhile = () => {}) {
  const server = await childServer(t, api);
  const { port } = server;
  const flow = options.replicate === 'flow';
  // Both connections of a race to a server of net go to one port; others to two, those of a flow again where a source port was somebody's.
  const syns = await lostSyns(t, (to, nth) => to === port + offset && (flow || nth === 0));
  const begun = () => syns.begun(port) + syns.begun(port + 1);
  const clock = movedClock();
  t.after(() => clock.stop());
  const hedged = { copyDelay: COPY_DELAY, pairTimeout: PAIR_TIMEOUT };
  const socket = repnet.connect({ host: HOST, port, ...hedged, ...options });
  t.after(() => socket.destroy());
  await until(() => syns.lost.length > 0, 'the first SYN');
  meanwhile(socket);
  clock.tick(COPY_DELAY - 1);
  await settle();
  const { portRetries, copiesIssued } = repnet.stats();
  const before = { begun: begun() - portRetries, copiesIssued, connecting: socket.connecting };
  clock.tick(1);
  await until(() => !socket.connecting, 'a connection is established');
  await exchange(socket);
  return { server, socket, before, lost: syns.lost };
}

/** Before the delay: one connection, and no second. */
const FIRST_ALONE = { begun: 1, copiesIssued: 0, connecting: true };

async function exchange(socket) {
  let echo = '';
  socket.on('data', (chunk) => {
    echo += chunk;
  });
  socket.write('once');
  await until(() => echo.length >= 4, 'the reply');
  assert.equal(echo, 'once');
}

for (const [api, offset, peer] of [
  ['net', 0, 'plain'],
  ['repnet', 0, 'repnet'],
])
  test(`RepSYN, hedged, to a server of ${api}: the second starts at the delay, wins, and the first is given up`, async (t) => {
    const { server, before, lost } = await slowFirst(t, api, offset, { replicate: 'syn', peer });
    assert.deepEqual(before, FIRST_ALONE);
    assert.equal(repnet.stats().synWonBySecond, 1);
    assert.deepEqual(
      lost.map(({ givenUp }) => givenUp),
      [true],
    );
    assert.deepEqual(await server.connections(), [4], 'one connection, each byte once');
  });

test('RepFlow, hedged: the second starts at the delay and carries the flow alone', async (t) => {
  const { server, before } = await slowFirst(t, 'repnet', 0, { replicate: 'flow', peer: 'repnet' });
  assert.deepEqual(before, FIRST_ALONE);
  assert.ok(repnet.stats().replyBytesWonByReplica >= 4);
  assert.deepEqual(await server.connections(), [4], 'one connection, each byte once');
});

test('RepFlow, hedged: where the second finds its source port taken the flow begins again, and waits no second time', async (t) => {
  const server = await childServer(t, 'repnet');
  const { port } = server;
  const syns = await lostSyns(t, (to) => to === port);
  const clock = movedClock();
  t.after(() => clock.stop());
  const hedged = { copyDelay: COPY_DELAY, pairTimeout: PAIR_TIMEOUT, replicate: 'flow', peer: 'repnet' };
  const socket = repnet.connect({ host: HOST, port, ...hedged });
  t.after(() => socket.destroy());
  await until(() => syns.lost.length > 0, 'the first SYN');
  const taken = syns.takenOnce(port + 1);
  clock.tick(COPY_DELAY);
  await until(() => !socket.connecting, 'a connection is established');
  assert.ok(taken());
  await exchange(socket);
});

for (const [replicate, offset] of [
  ['syn', 0],
  ['flow', 0],
])
  test(`hedged, ${replicate}: a socket that was unreferenced before its second connection began keeps no process`, async (t) => {
    const options = { replicate, peer: 'repnet' };
    const referenced = () =>
      process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length;
    // Connections of the tests before may not be gone yet.
    const before = referenced();
    const { socket } = await slowFirst(t, 'repnet', offset, options, (connecting) => connecting.unref());
    const unreferenced = referenced();
    assert.ok(unreferenced <= before, `${unreferenced} are referenced, and were ${before}`);
    socket.ref();
    assert.ok(referenced() > unreferenced);
  });
