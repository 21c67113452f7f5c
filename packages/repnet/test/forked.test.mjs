/**
 * Servers whose process forks another, which then has one of their ports, and clients whose process does: to a client that knows the
 * server from before, each flow is what it is with net, and nobody else hears what is for it.
 */
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import { beforeEach, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { forgetPeers, peerKey, recallPeer } from '../dist/client/peers.js';
import repnet from '../dist/index.js';
import { dial as flowOf, SECRET } from './lib/secret-flow.mjs';
import { countingServer, defaults, messageOf, settle, until } from './lib/support.mjs';

beforeEach(() => {
  forgetPeers();
  repnet.resetStats();
  Object.assign(defaults, { waitTimeout: 300, pairTimeout: 300 });
});

/** A process of lib/forked-server.mjs: `ask` sends it a message, and resolves with the result. */
async function start(t) {
  const child = fork(fileURLToPath(new URL('lib/forked-server.mjs', import.meta.url)));
  t.after(() => child.kill('SIGKILL'));
  await messageOf(child);
  return async (what, more = {}) => {
    child.send({ what, ...more });
    return (await messageOf(child)).result;
  };
}

/** Flows to the server, which answers with 'A', until the client knows its life. */
async function learn(t, port, options) {
  await until(async () => {
    assert.equal(await flowOf(t, port, options), 'A');
    await settle();
    return recallPeer(peerKey('127.0.0.1', port, port + 1))?.lives.length > 0;
  }, 'the server is known');
}

/** The ports of a server that has stopped, as `message`, the process that it has forked, finds them. */
const AFTER = {
  'listens on both ports': async (ask, port) => {
    await ask('close');
    await ask('child', { message: { what: 'listen', api: 'repnet', port, text: 'B' } });
  },
  'listens on the first port, by net': async (ask, port) => {
    await ask('close');
    await ask('child', { message: { what: 'listen', api: 'net', port, text: 'B' } });
  },
  'has a service of its own on the second port': async (ask, port) => {
    await ask('close');
    await ask('child', { message: { what: 'listen', api: 'net', port: port + 1, text: 'B' } });
  },
  'has a server of this library on the second port': async (ask, port) => {
    await ask('close');
    await ask('child', { message: { what: 'listen', api: 'repnet', port: port + 1, text: 'B' } });
  },
  'was given the listening server': async (ask) => {
    await ask('give', { text: 'B' });
    await ask('close');
  },
  'was given the listening server, and has a service of its own on the second port': async (ask, port) => {
    await ask('give', { text: 'B' });
    await ask('close');
    await ask('child', { message: { what: 'listen', api: 'net', port: port + 1, text: 'C' } });
  },
};

for (const replicate of ['flow', 'syn'])
  for (const peer of ['auto', 'repnet'])
    for (const [what, happens] of Object.entries(AFTER))
      test(`a process that a known server has forked ${what}: as with net (${replicate}, peer: '${peer}')`, async (t) => {
        const ask = await start(t);
        const port = await ask('listen', { api: 'repnet', port: 0, text: 'A' });
        await ask('fork');
        await learn(t, port, { replicate });
        await happens(ask, port);
        const plain = await flowOf(t, port, { api: net });
        const before = await ask('child', { message: { what: 'heard' } });
        assert.equal(await flowOf(t, port, { replicate, peer }), plain);
        await settle();
        const heard = (await ask('child', { message: { what: 'heard' } })).slice(before.length);
        assert.equal(heard.split(SECRET).length - 1, plain === 'B' ? 1 : 0, heard);
      });

for (const replicate of ['flow', 'syn'])
  test(`a process that a client forks, which knows the server, has flows of its own (${replicate})`, async (t) => {
    const server = await countingServer(t, repnet);
    const options = { port: server.port, host: '127.0.0.1', replicate, peer: 'auto' };
    const socket = repnet.connect(options);
    t.after(() => socket.destroy());
    socket.write('mine');
    assert.equal(String((await once(socket, 'data'))[0]), 'mine');
    const ask = await start(t);
    for (let i = 2; i <= 6; i++) {
      assert.equal(await ask('dial', { options, text: 'theirs' }), 'theirs');
      await settle();
      assert.equal(server.accepted, i);
    }
  });
