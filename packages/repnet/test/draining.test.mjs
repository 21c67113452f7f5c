/** `server.close()` keeps what it has accepted, as net does, whether or not it has said a hello yet. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import { beforeEach, test } from 'node:test';
import { forgetPeers } from '../dist/client/peers.js';
import repnet from '../dist/index.js';
import { decodeAnswer, Kind, Refusal } from '../dist/wire.js';
import { defaults, hello, raw, settle, until } from './lib/support.mjs';

const HOST = '127.0.0.1';

beforeEach(() => {
  forgetPeers();
  repnet.resetStats();
  Object.assign(defaults, { waitTimeout: 2_000, pairTimeout: 1_000 });
});

/** A server of `api` that answers each byte, and what became of it. */
async function echoing(api, options) {
  const seen = { connections: 0, closed: false };
  const server = api.createServer(options, (socket) => {
    seen.connections++;
    socket.on('error', () => {}).pipe(socket);
  });
  await new Promise((resolve) => server.listen(0, HOST, resolve));
  return Object.assign(seen, { server, port: server.address().port });
}

/** A connection that the server has accepted: so it has the one that was made after it, which is over. */
async function accepted(t, port) {
  const connection = await raw(t, port);
  const after = await raw(t, port);
  after.socket.destroy();
  await settle();
  return connection;
}

function close(seen) {
  seen.server.close(() => {
    seen.closed = true;
  });
}

const CASES = {
  'net: a client that has said nothing yet': { api: net, at: 0, says: () => [] },
  'a client that has said nothing yet': { at: 0, says: () => [] },
  'the winner of a race': { at: 1, says: (c, port) => [hello(c, port, { kind: Kind.raw })] },
};
for (const [name, { api = repnet, at, says }] of Object.entries(CASES))
  test(`${name}: a request that comes when the server is closed is answered, and then it is closed`, async (t) => {
    const seen = await echoing(api, {});
    const { port } = seen;
    const connection = await accepted(t, port + at);
    close(seen);
    await settle();
    assert.equal(seen.closed, false);
    connection.socket.write(Buffer.concat([...says(connection, port), Buffer.from('request')]));
    await until(() => connection.bytes.includes('request'));
    assert.equal(seen.closed, false);
    connection.socket.end();
    await until(() => seen.closed);
    assert.equal(connection.error, undefined);
  });

test('one that never says a hello keeps the server for a wait, and the loser of a race for as long as it is there', async (t) => {
  defaults.waitTimeout = 300;
  const seen = await echoing(repnet, {});
  const silent = await accepted(t, seen.port + 1);
  close(seen);
  await until(() => seen.closed);
  await until(() => silent.closed);
  defaults.waitTimeout = 600_000;
  const other = await echoing(repnet, {});
  const loser = await accepted(t, other.port + 1);
  close(other);
  await settle();
  loser.socket.resetAndDestroy();
  await until(() => other.closed);
  assert.deepEqual([seen.connections, other.connections], [0, 0]);
});

test('a second connection that says its hello when the server is closed is refused: its flow has the first', async (t) => {
  const seen = await echoing(repnet, {});
  const replica = await accepted(t, seen.port + 1);
  close(seen);
  replica.socket.write(hello(replica, seen.port));
  await until(() => replica.closed);
  assert.equal(decodeAnswer(replica.bytes).refusal, Refusal.unknown);
  await until(() => seen.closed);
});

test('a server that listens again goes on, when what was accepted before is gone', async (t) => {
  const { server, port } = await echoing(repnet, {});
  const silent = await accepted(t, port + 1);
  server.close();
  await new Promise((resolve) => server.listen(0, HOST, resolve));
  t.after(() => server.close());
  silent.socket.destroy();
  const connections = () => new Promise((resolve) => server.getConnections((_, count) => resolve(count)));
  await until(async () => (await connections()) === 0, 'nothing is waited for any more');
  assert.equal(server.listening, true);
  const client = await raw(t, server.address().port);
  client.socket.write('request');
  await until(() => client.bytes.includes('request'));
});

test('nothing is waited for where there is nothing', async () => {
  const seen = await echoing(repnet, {});
  close(seen);
  await once(seen.server, 'close');
  assert.throws(() => seen.server.address().port, TypeError);
});
