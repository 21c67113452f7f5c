/**
 * A client that has given its second connection up before anything was on it, because no answer had come: the server may have begun a
 * flow by it, and serves the first connection all the same, however late that comes. All by a clock that the test moves.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { forgetPeers } from '../dist/client/peers.js';
import repnet from '../dist/index.js';
import { attachment } from '../dist/socket-internals.js';
import { ANSWER_BYTES, decodeAnswer, Refusal } from '../dist/wire.js';
import { lostSyns } from './lib/lost-syns.mjs';
import { movedClock } from './lib/moved-clock.mjs';
import { startRelay } from './lib/relay.mjs';
import { defaults, echoServer, hello, OWN_ADDRESS, ownPort, raw, until } from './lib/support.mjs';

const WAIT = 400;
const PAIR_TIMEOUT = 500;

/** An echo server that is past the time in which one that has just begun lets no flow begin with its second connection. */
async function oldServer(t, options, waitTimeout) {
  Object.assign(defaults, { waitTimeout, pairTimeout: PAIR_TIMEOUT });
  const clock = movedClock();
  t.after(() => clock.stop());
  const server = await echoServer(t, options);
  clock.tick(2 * waitTimeout);
  return { clock, ...server };
}

/** The server has begun a flow by its second connection, and lost that again. */
const begunAndLost = (sockets) => () => {
  const { flow } = (sockets[0] && attachment(sockets[0])) ?? {};
  return flow !== undefined && !flow.tx.copies.includes('open');
};

/** Says hello on a second connection and breaks it off when the server has let a flow begin by it; the flow's source port. */
async function givenUp(t, { port, sockets }) {
  const localPort = ownPort();
  const second = await raw(t, port + 1, { localPort });
  second.socket.write(hello(second, port));
  await until(() => second.bytes.length >= ANSWER_BYTES, 'an answer');
  assert.equal(decodeAnswer(second.bytes).refusal, Refusal.none);
  second.socket.resetAndDestroy();
  await until(begunAndLost(sockets), 'the server knows that the second is gone');
  return localPort;
}

// While the flow waits for its first connection, while such a one is still taken for its, and after that.
for (const later of [0.25, 1.2, 1.6, 2.5])
  test(`the first comes ${later} of the wait later`, async (t) => {
    const server = await oldServer(t, {}, WAIT);
    const localPort = await givenUp(t, server);
    server.clock.tick(later * WAIT);
    const first = await raw(t, server.port, { localPort });
    first.socket.write('request');
    await until(() => first.bytes.toString() === 'request' || first.closed, 'the echo');
    assert.deepEqual([first.bytes.toString(), first.error], ['request', undefined]);
  });

/** When a connection is established whose first one, two and three SYNs are lost: a second, and each time twice as much. */
// By one of these each comes when only the wait for a second is over; by others it is waited for, or its flow is forgotten.
for (const [syns, ms] of [
  ['one SYN', 1_000],
  ['two SYNs', 3_000],
  ['three SYNs', 7_000],
])
  for (const waitTimeout of [800, 2_200, 5_200])
    for (const peer of ['repnet', 'auto'])
      test(`${syns} of the first connection lost, and no answer on the second in time, peer ${peer}, a wait of ${waitTimeout} ms: the flow completes, as by net`, async (t) => {
        forgetPeers();
        const relay = await startRelay({
          faultsFor: (_, copy) =>
            copy === 1
              ? [{ copy, direction: 'down', at: 0, kind: 'pause', until: new Promise(() => {}) }]
              : [],
        });
        t.after(() => relay.close());
        const { host, port } = relay;
        const options = { addresses: [`${host}:${port}`] };
        const server = await oldServer(t, options, waitTimeout);
        const { clock, sockets } = server;
        relay.targetPort = server.port;
        const first = await lostSyns(t, (to) => to === port);
        // The relay uses the source port again, which a connection whose port the kernel chose would not let it.
        const from = { localAddress: OWN_ADDRESS, localPort: ownPort() };
        const socket = repnet.connect({ host, port, ...from, replicate: 'flow', peer });
        t.after(() => socket.destroy());
        const seen = { text: '', errors: [], closed: false };
        socket
          .on('data', (bytes) => (seen.text += bytes))
          .on('error', ({ code }) => seen.errors.push(code))
          .on('close', () => (seen.closed = true));
        socket.write('request');
        await until(() => sockets.length === 1, 'the server has begun a flow by the second connection');
        clock.tick(PAIR_TIMEOUT);
        await until(begunAndLost(sockets), 'the client has given the second up');
        clock.tick(ms - PAIR_TIMEOUT);
        first.arrive();
        await until(
          () => seen.text === 'request' || seen.closed,
          'the echo',
          () => seen,
        );
        assert.deepEqual(seen, { text: 'request', errors: [], closed: false });
        assert.equal(sockets.filter(({ bytesRead }) => bytesRead > 0).length, 1, 'one request, once');
      });
