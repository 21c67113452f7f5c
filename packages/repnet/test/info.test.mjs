/** repnet.info: what a program may know of one of its sockets. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import { beforeEach, test } from 'node:test';
import { forgetPeers } from '../dist/client/peers.js';
import repnet from '../dist/index.js';
import { lostSyns } from './lib/lost-syns.mjs';
import { data, defaults, echo, echoServer, hello, ownPort, raw, until } from './lib/support.mjs';

const HOST = '127.0.0.1';

beforeEach(() => {
  forgetPeers();
  repnet.resetStats();
  Object.assign(defaults, { waitTimeout: 300, pairTimeout: 300 });
});

const dial = (t, port, options) => {
  const socket = repnet.connect({ host: HOST, port, ...options });
  t.after(() => socket.destroy());
  return socket;
};

test('of what is not ours: nothing', () => {
  for (const other of [new net.Socket(), {}, null, undefined]) assert.equal(repnet.info(other), undefined);
});

test('a flow on two connections, both ends, also when it is over', async (t) => {
  const { port, sockets } = await echoServer(t);
  const socket = dial(t, port, { replicate: 'flow', peer: 'repnet' });
  assert.deepEqual(repnet.info(socket), {
    mode: 'flow',
    paired: false,
    bytesWon: { primary: 0, replica: 0 },
    winner: undefined,
  });
  await echo(socket, 'twelve bytes');
  await until(() => repnet.info(socket).paired && repnet.info(sockets[0]).paired, 'both ends know of both');
  const closed = Promise.all([once(socket, 'close'), once(sockets[0], 'close')]);
  socket.destroy();
  sockets[0].destroy();
  await closed;
  for (const each of [socket, sockets[0]]) {
    const { mode, paired, bytesWon, winner } = repnet.info(each);
    assert.deepEqual([mode, paired, bytesWon.primary + bytesWon.replica], ['flow', true, 12]);
    assert.equal(winner, bytesWon.replica > bytesWon.primary ? 'replica' : 'primary');
  }
});

test('the copy that was faster wins what it brings first', async (t) => {
  const { port, sockets } = await echoServer(t);
  const localPort = ownPort();
  const first = await raw(t, port, { localPort });
  const second = await raw(t, port + 1, { localPort });
  second.socket.write(Buffer.concat([hello(second, port), data(0, 'by the second')]));
  await until(() => sockets.length === 1 && repnet.info(sockets[0]).bytesWon.replica === 13);
  assert.equal(repnet.info(sockets[0]).winner, 'replica');
  first.socket.write('by the second, and then by the first');
  await until(() => repnet.info(sockets[0]).bytesWon.primary === 23);
  assert.deepEqual(repnet.info(sockets[0]), {
    mode: 'flow',
    paired: true,
    bytesWon: { primary: 23, replica: 13 },
    winner: 'primary',
  });
});

test('a race: open, then won', async (t) => {
  const { port, sockets } = await echoServer(t);
  await lostSyns(t, (to) => to === port);
  const socket = dial(t, port, { replicate: 'syn', peer: 'repnet' });
  assert.deepEqual([repnet.info(socket).mode, repnet.info(socket).winner], ['syn', undefined]);
  await echo(socket, 'x');
  assert.equal(repnet.info(socket).mode, 'syn');
  assert.equal(repnet.info(socket).winner, 'replica');
  assert.deepEqual(repnet.info(sockets[0]), {
    mode: 'syn',
    paired: false,
    bytesWon: { primary: 1, replica: 0 },
    winner: undefined,
  });
});

test('a plain connection, at its client; at a server that waits for a second one, and when it no longer does', async (t) => {
  const { port, sockets } = await echoServer(t);
  const socket = dial(t, port, { replicate: false });
  await echo(socket, 'four');
  const plain = { mode: false, paired: false, bytesWon: { primary: 4, replica: 0 }, winner: undefined };
  assert.deepEqual(repnet.info(socket), plain);
  assert.deepEqual(repnet.info(sockets[0]), { ...plain, mode: 'flow' });
  await until(() => repnet.info(sockets[0]).mode === false, 'the wait is over');
  assert.deepEqual(repnet.info(sockets[0]), plain);
});

test('a socket that connects again begins anew', async (t) => {
  const { port } = await echoServer(t);
  const socket = dial(t, port, { replicate: 'syn', peer: 'repnet' });
  await echo(socket, 'x');
  const closed = once(socket, 'close');
  socket.destroy();
  await closed;
  socket.connect({ host: HOST, port, replicate: false });
  await echo(socket, 'y');
  assert.equal(repnet.info(socket).mode, false);
});
