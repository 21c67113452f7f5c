/** An unmodified server's view of a race: one connection if it is on this host, and a loser that ends like any client else. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import { test } from 'node:test';
import { AddressAttempt } from '../dist/client/attempt.js';
import { dropLoser } from '../dist/client/loser.js';
import { REPLICA } from '../dist/flow/machine.js';
import repnet from '../dist/index.js';
import { echo, settle, until } from './lib/support.mjs';

const HOST = '127.0.0.1';

async function serve(t, options, onConnection) {
  const server = net.createServer(options, onConnection).listen(0, HOST);
  await once(server, 'listening');
  t.after(() => server.close());
  return server.address().port;
}

/** A connection to `port` that the system has established, and that has lost its race. */
function lose(port) {
  const sink = { attemptEvent() {}, attemptOpen: assert.fail, attemptFailed: assert.fail };
  const attempt = new AddressAttempt(REPLICA, sink, { host: HOST, port });
  attempt.begin();
  assert.equal(attempt.isEstablished, true);
  dropLoser(attempt, 'fin');
}

const SERVERS = {
  'says nothing': () => {},
  'greets its clients': (socket) => socket.write('220 ready\r\n'),
  'greets them a moment later, and goes on': (socket) => {
    setImmediate(() => socket.write('220 ready\r\n', () => socket.write('and more')));
  },
  'answers an end by its last words': (socket) => socket.on('end', () => socket.end('bye')),
};
for (const [what, does] of Object.entries(SERVERS))
  for (const allowHalfOpen of [false, true])
    test(`a server without an 'error' listener that ${what}, ${allowHalfOpen ? '' : 'not '}half-open: the loser of a race ends, and is no error`, async (t) => {
      const events = [];
      const port = await serve(t, { allowHalfOpen }, (socket) => {
        does(socket);
        socket.on('end', () => {
          events.push('end');
          if (!socket.writableEnded) socket.end();
        });
        // An error would be uncaught, and fail the test.
        socket.on('close', (hadError) => events.push(hadError)).resume();
      });
      lose(port);
      await until(() => events.length === 2, 'it is closed');
      assert.deepEqual(events, ['end', false]);
    });

test('a server on this host, which the first connection reaches at once, has no second one', async (t) => {
  let connections = 0;
  const port = await serve(t, {}, (socket) => {
    connections++;
    socket.pipe(socket);
  });
  repnet.resetStats();
  for (let flows = 1; flows <= 5; flows++) {
    const socket = repnet.connect({ port, host: HOST, replicate: 'syn', peer: 'plain' });
    t.after(() => socket.destroy());
    assert.equal(await echo(socket, 'x'), 'x');
    await settle();
    assert.equal(connections, flows);
  }
  assert.deepEqual([repnet.stats().flowsSyn, repnet.stats().copiesIssued], [5, 0]);
});
