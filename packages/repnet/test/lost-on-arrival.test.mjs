/**
 * Connections that are reset before the server has accepted them: the system no longer knows where they came from. One
 * 'connection' per flow all the same, and an error as of net. The server's process stands still while a child connects and resets.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import net from 'node:net';
import { beforeEach, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import repnet from '../dist/index.js';
import { Kind } from '../dist/wire.js';
import { data, defaults, echoServer, hello, OWN_ADDRESS, ownPort, raw, until } from './lib/support.mjs';

const CLIENT = fileURLToPath(new URL('lib/reset-client.mjs', import.meta.url));

beforeEach(() => {
  Object.assign(defaults, { waitTimeout: 300, pairTimeout: 300 });
  repnet.resetStats();
});

/** When this returns the connection is established, has said `bytes` and is reset, and nobody has accepted it. */
function connectAndReset(port, localPort, bytes = Buffer.alloc(0)) {
  const args = [port, OWN_ADDRESS, localPort, bytes.toString('hex')].map(String);
  const { status, stderr } = spawnSync(process.execPath, [CLIENT, ...args]);
  assert.equal(status, 0, String(stderr));
}

/** A replica that begins a flow, once the server lets one. */
async function beginningReplica(t, port, sockets) {
  const before = sockets.length;
  for (;;) {
    const replica = await raw(t, port + 1, { localPort: ownPort() });
    replica.socket.write(Buffer.concat([hello(replica, port), data(0, 'request')]));
    await until(() => sockets.length > before || replica.closed || replica.ended, 'begun or refused');
    if (sockets.length > before) return replica;
  }
}

for (const [how, options] of [
  ['accepted directly', {}],
  ['accepted by net, which holds a limit', { maxConnections: 100 }],
]) {
  const serverWith = async (t) => {
    const { server, ...rest } = await echoServer(t);
    Object.assign(server, options);
    return { server, ...rest };
  };

  test(`${how}: a flow's second connection does not begin it again`, async (t) => {
    const { sockets, port } = await serverWith(t);
    await beginningReplica(t, port, sockets);
    for (const socket of sockets) socket.destroy();
    const before = sockets.length;
    const localPort = ownPort();
    // Until the flow that began with its second connection is forgotten, what is lost is taken for its first.
    while (sockets.length === before) {
      const { lateTwins } = repnet.stats();
      connectAndReset(port, localPort);
      await until(() => sockets.length > before || repnet.stats().lateTwins > lateTwins, 'told or dropped');
    }
    const replica = await raw(t, port + 1, { localPort });
    replica.socket.write(Buffer.concat([hello(replica, port), data(0, 'request')]));
    await until(() => replica.closed || replica.ended, 'refused');
    assert.equal(sockets.length, before + 1);
  });

  test(`${how}: a first connection of a flow that began with its second is not told`, async (t) => {
    const { server, sockets, port } = await serverWith(t);
    const replica = await beginningReplica(t, port, sockets);
    const told = sockets.length;
    connectAndReset(port, replica.socket.localPort);
    await until(() => repnet.stats().lateTwins === 1, 'dropped');
    assert.equal(sockets.length, told);
    const count = await new Promise((resolve) => server.getConnections((_error, open) => resolve(open)));
    assert.equal(count, sockets.filter((s) => !s.destroyed).length);
  });

  test(`${how}: with no such flow it is told, as by net`, async (t) => {
    const { sockets, port } = await serverWith(t);
    connectAndReset(port, ownPort());
    await until(() => sockets.length === 1 && sockets[0].destroyed, 'told, and destroyed');
    assert.equal(sockets[0].errored?.code, 'ECONNRESET');
  });
}

/** What the winner of a race says before its application does. */
function winnersHello(port, localPort) {
  return hello({ localAddress: OWN_ADDRESS, localPort }, port, { kind: Kind.raw });
}

/** Of `resumes`: the application's own pause, for a turn. */
function pausing(resume, pause) {
  pause();
  setImmediate(resume);
}

/** What the application sees of a connection to `port` that has said `bytes` and is reset. */
async function seenOf(t, api, { resumes, ...options }, connect) {
  const seen = [];
  const server = api.createServer(options, (socket) => {
    seen.push('connection');
    socket.on('data', (chunk) => seen.push(String(chunk)));
    socket.on('end', () => seen.push('end'));
    socket.on('error', ({ code, message }) => seen.push(code, message));
    socket.on('close', () => seen.push('close'));
    resumes?.(
      () => socket.resume(),
      () => socket.pause(),
    );
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  connect(server.address().port, ownPort());
  await until(() => seen.includes('close'), 'told, and closed');
  return seen;
}

for (const [how, options] of [
  ['', {}],
  [' to a server that pauses', { pauseOnConnect: true, resumes: setImmediate }],
  [' to a server that pauses and resumes at once', { pauseOnConnect: true, resumes: (resume) => resume() }],
  [
    ' to a server that pauses and resumes in the same turn',
    { pauseOnConnect: true, resumes: process.nextTick },
  ],
  [' to an application that pauses it', { resumes: pausing }],
])
  test(`the winner of a race${how} that is reset before its application has said a word: the error that net shows`, async (t) => {
    const ofNet = await seenOf(t, net, options, connectAndReset);
    assert.deepEqual(ofNet, ['connection', 'ECONNRESET', 'read ECONNRESET', 'close']);
    const winner = (port, localPort) => connectAndReset(port + 1, localPort, winnersHello(port, localPort));
    assert.deepEqual(await seenOf(t, repnet, options, winner), ofNet);
  });

test('the winner of a race that is reset when its application has said something: what net shows', async (t) => {
  const words = Buffer.from('words');
  const ofNet = await seenOf(t, net, {}, (port, localPort) => connectAndReset(port, localPort, words));
  const winner = (port, localPort) =>
    connectAndReset(port + 1, localPort, Buffer.concat([winnersHello(port, localPort), words]));
  assert.deepEqual(await seenOf(t, repnet, {}, winner), ofNet);
});
