/**
 * Hedged (`copyDelay` > 0) and the first connection really slow: its SYN meets a server whose queue of connections to accept
 * is full, and is dropped by the kernel. The second starts at the delay and not before, and by then the queue has room.
 */
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import repnet from '../dist/index.js';
import { fullServer, until } from './lib/full-queue.mjs';
import { movedClock } from './lib/moved-clock.mjs';
import { PATIENCE } from './lib/support.mjs';

const HOST = '127.0.0.1';
// By a clock that the test moves. Together less than the server remembers a flow.
const COPY_DELAY = 200;
const PAIR_TIMEOUT = 150;
const skip = process.platform === 'linux' ? false : 'what a full queue does to a SYN is known of Linux only';

beforeEach(() => {
  repnet.resetStats();
});

/** Attempts to connect of this process that are under way. */
const attempts = () => process.getActiveResourcesInfo().filter((name) => /ConnectWrap$/.test(name)).length;

/**
 * Dials with the first connection's SYN dropped, moves the clock to the delay when there is room, and lets the flow bring a reply. A SYN
 * is repeated after a second; where so much has passed by then, nothing is shown and it is done again.
 */
async function slowFirst(t, api, offset, options, meanwhile = () => {}) {
  for (const end = Date.now() + 5 * PATIENCE; Date.now() < end; ) {
    const server = await fullServer(t, api, offset);
    const clock = movedClock();
    try {
      const begun = Date.now();
      const hedged = { copyDelay: COPY_DELAY, pairTimeout: PAIR_TIMEOUT };
      const socket = repnet.connect({ host: HOST, port: server.port, ...hedged, ...options });
      t.after(() => socket.destroy());
      await until(() => attempts() === 1, 'the first SYN');
      meanwhile(socket);
      clock.tick(COPY_DELAY - 1);
      const before = { attempts: attempts(), connecting: socket.connecting };
      await server.wake();
      clock.tick(1);
      // The first connection's next SYN, a second later, may have been quicker than all of this.
      await until(() => !socket.connecting, 'a connection is established');
      await exchange(socket);
      if (Date.now() - begun < 900) return { server, socket, before };
      socket.destroy();
      repnet.resetStats();
    } finally {
      clock.stop();
    }
  }
  throw new Error(`not once in ${5 * PATIENCE} ms did a reply come within a second of the first SYN`);
}

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
  ['repnet', 1, 'repnet'],
])
  test(`RepSYN, hedged, to a server of ${api}: the second starts at the delay, wins, and the first is given up`, {
    skip,
  }, async (t) => {
    const { server, before } = await slowFirst(t, api, offset, { replicate: 'syn', peer });
    assert.deepEqual(before, { attempts: 1, connecting: true }, 'no second connection before the delay');
    assert.equal(repnet.stats().synWonBySecond, 1);
    assert.equal(attempts(), 0, 'the first is given up');
    assert.deepEqual(await server.connections(), [4], 'one connection, each byte once');
  });

test('RepFlow, hedged: the second starts at the delay and carries the flow alone', {
  skip,
}, async (t) => {
  const { server, before } = await slowFirst(t, 'repnet', 0, { replicate: 'flow', peer: 'repnet' });
  assert.deepEqual(before, { attempts: 1, connecting: true });
  assert.ok(repnet.stats().replyBytesWonByReplica >= 4);
  assert.deepEqual(await server.connections(), [4], 'one connection, each byte once');
});

for (const [replicate, offset] of [
  ['syn', 1],
  ['flow', 0],
])
  test(`hedged, ${replicate}: a socket that was unreferenced before its second connection began keeps no process`, {
    skip,
  }, async (t) => {
    const options = { replicate, peer: 'repnet' };
    const { socket } = await slowFirst(t, 'repnet', offset, options, (connecting) => connecting.unref());
    const referenced = () => process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap');
    assert.deepEqual(referenced(), []);
    socket.ref();
    assert.notDeepEqual(referenced(), []);
  });
