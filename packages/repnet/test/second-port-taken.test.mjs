/** Where the successor of a server's port is somebody else's, the server is a plain one, as with net. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import { beforeEach, test } from 'node:test';
import { forgetPeers } from '../dist/client/peers.js';
import repnet from '../dist/index.js';
import { echo, OWN_ADDRESS, ownPort } from './lib/support.mjs';

beforeEach(() => forgetPeers());

/** A port of ours whose successor `holder` has. */
async function beside(t, holder) {
  for (;;) {
    const port = ownPort();
    try {
      await once(holder.listen(port + 1, OWN_ADDRESS), 'listening');
      t.after(() => holder.close());
      return port;
    } catch (error) {
      if (error.code !== 'EADDRINUSE') throw error;
    }
  }
}

function warnings(t) {
  const seen = [];
  const onWarning = ({ code, message }) => code === 'REPNET_SECOND_PORT' && seen.push(message);
  process.on('warning', onWarning);
  t.after(() => process.off('warning', onWarning));
  return seen;
}

const echoing = (options) =>
  repnet.createServer(options, (socket) => socket.on('error', () => {}).pipe(socket));

/** Reads what comes, as any service does. */
const bearing = (socket) => socket.on('error', () => {}).resume();

for (const [who, holder] of Object.entries({
  "another library's": () => net.createServer(bearing),
  'another server of this library': () => repnet.createServer({ replicate: false }, bearing),
}))
  test(`listen(P) serves plainly where P + 1 is ${who}, and warns once`, async (t) => {
    const port = await beside(t, holder());
    const seen = warnings(t);
    const server = echoing({ replicate: 'flow' });
    t.after(() => server.close());
    await once(server.listen(port, OWN_ADDRESS), 'listening');
    assert.equal(server.replicaAddress(), null);
    for (const api of [net, repnet]) {
      const socket = api.connect({ port, host: OWN_ADDRESS });
      t.after(() => socket.destroy());
      assert.equal(await echo(socket, 'hello'), 'hello');
    }
    assert.equal(seen.length, 1);
    assert.match(seen[0], new RegExp(`${port + 1}.*${port}.*replicas.*EADDRINUSE.*plain.*replicaPort`));
  });

test('a server that is plain for want of its second port closes, and says that it has', async (t) => {
  const port = await beside(t, net.createServer(bearing));
  const server = echoing({ replicate: 'flow' });
  await once(server.listen(port, OWN_ADDRESS), 'listening');
  server.close();
  await once(server, 'close');
  assert.equal(server.listening, false);
});

test('two servers of this library at adjacent ports both listen', async (t) => {
  const port = await beside(t, repnet.createServer({ replicate: 'flow' }, bearing));
  const lower = repnet.createServer({ replicate: 'flow' });
  t.after(() => lower.close());
  await once(lower.listen(port, OWN_ADDRESS), 'listening');
  assert.equal(lower.address().port, port);
});

test('a second port that is asked for by its number has to be had: the error says what it is for', async (t) => {
  const port = await beside(t, net.createServer(bearing));
  const server = echoing({ replicate: 'flow', replicaPort: port + 1 });
  const [error] = await once(server.listen(port, OWN_ADDRESS), 'error');
  assert.equal(error.code, 'EADDRINUSE');
  assert.match(error.message, new RegExp(`second port of the server on ${port}, for replicas`));
  assert.equal(server.listening, false);
});

test('a server without a second port greets its clients at once, as net does', async (t) => {
  const port = await beside(t, net.createServer(bearing));
  const server = repnet.createServer({ replicate: 'flow' }, (socket) => socket.end('220 ready'));
  t.after(() => server.close());
  await once(server.listen(port, OWN_ADDRESS), 'listening');
  const socket = repnet.connect({ port, host: OWN_ADDRESS, replicate: 'flow', peer: 'repnet' });
  t.after(() => socket.destroy());
  const [greeting] = await once(socket, 'data');
  assert.equal(String(greeting), '220 ready');
});
