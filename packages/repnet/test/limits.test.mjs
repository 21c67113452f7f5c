/** `maxConnections` and `dropMaxConnection` count flows, not connections, and 'drop' tells what net's tells, once per flow. */
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import { before, beforeEach, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import repnet from '../dist/index.js';
import { Kind } from '../dist/wire.js';
import { notThisNode } from './lib/skips.mjs';
import {
  defaults,
  echo,
  grown,
  hello,
  messageOf,
  OWN_ADDRESS,
  ownPort,
  raw,
  settle,
  until,
} from './lib/support.mjs';

const HOST = '127.0.0.1';
const MODES = [false, 'syn', 'flow'];

before(() => {
  defaults.pairTimeout = 250;
});
beforeEach(() => {
  defaults.waitTimeout = 300;
  repnet.resetStats();
});

/** From now on a drop that was told is remembered for longer than any machine needs to drop the other connection. */
function rememberDrops() {
  defaults.waitTimeout = 60_000;
}

function dial(t, port, replicate) {
  const socket = repnet.connect({ host: HOST, port, replicate, peer: 'repnet' }).on('error', () => {});
  t.after(() => socket.destroy());
  return socket;
}

/** A server that takes `most` connections, and the 'drop' events that it has told. */
async function limited(t, api, most) {
  const drops = [];
  const sockets = [];
  const server = api.createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => {}).on('data', (chunk) => socket.write(chunk));
  });
  server.maxConnections = most;
  server.on('drop', (data) => drops.push({ ...data }));
  await new Promise((resolve) => server.listen(0, HOST, resolve));
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { server, sockets, drops, port: server.address().port };
}

const drop = (port, remotePort, remoteAddress = HOST) => ({
  localAddress: HOST,
  localPort: port,
  localFamily: 'IPv4',
  remoteAddress,
  remotePort,
  remoteFamily: 'IPv4',
});

for (const replicate of MODES)
  test(`replicate ${replicate}: as many flows as connections are allowed, and one more is dropped, told once`, async (t) => {
    const { server, sockets, drops, port } = await limited(t, repnet, 3);
    await grown();
    for (let n = 0; n < 3; n++) assert.equal(await echo(dial(t, port, replicate), 'x'), 'x');
    if (replicate === 'flow') await until(() => repnet.stats().flowsPaired === 3);
    assert.equal(await new Promise((resolve) => server.getConnections((_, count) => resolve(count))), 3);
    const own = replicate === 'syn' ? {} : { localAddress: OWN_ADDRESS, localPort: ownPort() };
    const options = { host: HOST, port, replicate, peer: 'repnet', ...own };
    rememberDrops();
    const dropped = repnet.connect(options).on('error', () => {});
    dropped.write('x');
    const from = await new Promise((resolve) => dropped.once('connect', () => resolve(dropped.localPort)));
    await once(dropped.resume(), 'close');
    await settle();
    assert.deepEqual(drops, [drop(port, from, own.localAddress)]);
    assert.equal(sockets.length, 3);
    // One goes, and there is room for another.
    sockets[0].destroy();
    await until(() => server._connections === 2);
    assert.equal(await echo(dial(t, port, replicate), 'y'), 'y');
  });

for (const order of ['first', 'second'])
  test(`both connections of a flow are refused, the ${order} before the other: one 'drop'`, async (t) => {
    const { drops, port } = await limited(t, repnet, 1);
    await grown();
    await raw(t, port);
    const localPort = ownPort();
    const connect = {
      first: async () => {
        const connection = await raw(t, port, { localPort });
        await until(() => connection.closed || connection.ended);
      },
      second: async () => {
        const connection = await raw(t, port + 1, { localPort });
        connection.socket.write(hello(connection, port));
        await until(() => connection.closed || connection.ended);
      },
    };
    rememberDrops();
    await connect[order]();
    await connect[order === 'first' ? 'second' : 'first']();
    assert.deepEqual(drops, [drop(port, localPort, OWN_ADDRESS)]);
  });

test("connection after connection from one port, without copies: a 'drop' each, as with net", async (t) => {
  for (const api of [net, repnet]) {
    const { drops, port } = await limited(t, api, 1);
    await raw(t, port);
    const localPort = ownPort();
    for (let n = 0; n < 4; n++) {
      const connection = await raw(t, port, { localPort });
      connection.socket.resetAndDestroy();
      await until(() => connection.closed);
    }
    await until(() => drops.length === 4, `four of ${api === net ? 'net' : 'repnet'}`);
    assert.deepEqual(drops[3], drop(port, localPort, OWN_ADDRESS));
  }
});

test("the winner of a RepSYN race that is dropped: net's data, with the port the application knows", async (t) => {
  const { drops, port } = await limited(t, repnet, 1);
  await raw(t, port);
  const winner = await raw(t, port + 1);
  const from = winner.socket.localPort;
  winner.socket.write(hello(winner, port, { kind: Kind.raw }));
  await until(() => winner.closed || winner.ended);
  assert.deepEqual(drops, [drop(port, from)]);
});

/** Two workers that take `most` each. */
async function cluster(t, api, most) {
  const child = fork(fileURLToPath(new URL('lib/limited-cluster.mjs', import.meta.url)), [api, String(most)]);
  t.after(() => child.kill('SIGKILL'));
  const [port] = await messageOf(child);
  const ask = async (message) => {
    child.send(message);
    const answers = await messageOf(child);
    return {
      connections: answers.map(({ connections }) => connections),
      drops: answers.flatMap(({ drops }) => drops),
    };
  };
  return { port, ask };
}

for (const [api, replicate] of [
  ['net', false],
  ['repnet', false],
  ['repnet', 'flow'],
])
  test(`cluster, ${api}, replicate ${replicate}: two workers of two connections each serve four flows; the copies do not count`, async (t) => {
    const { port, ask } = await cluster(t, api, 2);
    for (let n = 0; n < 4; n++) assert.equal(await echo(dial(t, port, replicate), `${n}`), `${n}`);
    assert.deepEqual(await ask('report'), { connections: [2, 2], drops: [] });
  });

const [major, minor] = process.versions.node.split('.').map(Number);
const skip = major < 22 || (major === 22 && minor < 12) ? notThisNode('no dropMaxConnection') : false;

for (const [api, replicate] of [
  ['net', false],
  ['repnet', false],
  ['repnet', 'flow'],
])
  test(`cluster, ${api}, replicate ${replicate}: with dropMaxConnection the fifth is dropped, and told once`, {
    skip,
  }, async (t) => {
    const { port, ask } = await cluster(t, api, 2);
    for (let n = 0; n < 4; n++) assert.equal(await echo(dial(t, port, replicate), `${n}`), `${n}`);
    await ask('drop');
    const fifth = dial(t, port, replicate);
    const from = await new Promise((resolve) => fifth.once('connect', () => resolve(fifth.localPort)));
    await once(fifth.resume(), 'close');
    assert.deepEqual(await ask('report'), { connections: [2, 2], drops: [drop(port, from)] });
  });
