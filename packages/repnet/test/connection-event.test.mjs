/** Programs that replace `emit` of a server, on the object or in a subclass, see what it accepts: once per flow, and ours. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { unlinkSync } from 'node:fs';
import net from 'node:net';
import { beforeEach, test } from 'node:test';
import { forgetPeers } from '../dist/client/peers.js';
import repnet from '../dist/index.js';
import { resetBudget } from '../dist/memory/budget.js';
import { HOST, path } from './lib/observe.mjs';
import { notThisNode } from './lib/skips.mjs';
import { defaults, echo, grown, hello, ownPort, raw, until } from './lib/support.mjs';

beforeEach(() => {
  forgetPeers();
  resetBudget();
  repnet.resetStats();
  Object.assign(defaults, { waitTimeout: 300, pairTimeout: 300 });
});

/** How a program comes to see what a server emits. */
const REPLACEMENTS = {
  'on the object': (api, options, see) => {
    const server = api.createServer(options);
    const { emit } = server;
    server.emit = function (...args) {
      see(...args);
      return emit.apply(this, args);
    };
    return server;
  },
  'in a subclass': (api, options, see) =>
    new (class extends api.Server {
      emit(...args) {
        see(...args);
        return super.emit(...args);
      }
    })(options),
};

/** Limits make net accept the connections; without them this library does. */
const LIMITS = {
  'no limit': () => {},
  maxConnections: (server) => (server.maxConnections = 100),
};

async function serve(t, api, replace, options, limit, where = { port: 0, host: HOST }) {
  const seen = { names: [], sockets: [], heard: [] };
  const server = REPLACEMENTS[replace](api, options, (name, socket) => {
    seen.names.push(name);
    if (name === 'connection') seen.sockets.push(socket);
  });
  server.on('connection', (socket) => {
    seen.heard.push(socket);
    socket.on('error', () => {}).on('data', (chunk) => socket.write(chunk));
  });
  limit(server);
  server.listen(where);
  await once(server, 'listening');
  t.after(() => {
    for (const socket of seen.heard) socket.destroy();
    server.close();
  });
  return Object.assign(seen, { server, port: server.address().port });
}

for (const replace of Object.keys(REPLACEMENTS))
  for (const [limitName, limit] of Object.entries(LIMITS))
    for (const serves of ['flow', false])
      test(`${replace}, ${limitName}, replicate: ${serves}: as net, in every mode of the client`, async (t) => {
        const expected = await serve(t, net, replace, {}, limit);
        await echo(net.connect(expected.port, HOST), 'x');
        for (const replicate of ['flow', 'syn', false]) {
          const seen = await serve(t, repnet, replace, { replicate: serves }, limit);
          const socket = repnet.connect({
            port: seen.port,
            host: HOST,
            replicate,
            peer: serves === 'flow' ? 'repnet' : 'auto',
          });
          t.after(() => socket.destroy());
          await echo(socket, 'x');
          if (serves === 'flow' && replicate === 'flow')
            await until(() => repnet.info(socket).paired, 'the second connection has come');
          assert.deepEqual(seen.names, expected.names);
          assert.deepEqual(seen.sockets, seen.heard);
          assert.ok(
            seen.sockets[0] instanceof repnet.Socket === true && seen.sockets[0].server === seen.server,
          );
          assert.equal(seen.server._connections, 1);
        }
      });

test('a flow that begins with its second connection, and one whose first joins it under limits', async (t) => {
  for (const limit of Object.values(LIMITS)) {
    const seen = await serve(t, repnet, 'on the object', {}, limit);
    await grown();
    const localPort = ownPort();
    const { flowsPaired } = repnet.stats();
    const second = await raw(t, seen.port + 1, { localPort });
    second.socket.write(hello(second, seen.port));
    await until(() => seen.heard.length === 1, 'the second connection begins the flow');
    await raw(t, seen.port, { localPort });
    await until(() => repnet.stats().flowsPaired > flowsPaired, 'the first joins it');
    assert.deepEqual(seen.names, ['listening', 'connection']);
    assert.deepEqual(seen.sockets, seen.heard);
    assert.equal(seen.server._connections, 1);
  }
});

test('a Unix socket: the connections are ours', async (t) => {
  const at = path(7);
  t.after(() => {
    try {
      unlinkSync(at);
    } catch {
      // the server has removed it
    }
  });
  const seen = await serve(t, repnet, 'on the object', {}, LIMITS['no limit'], { path: at });
  const socket = repnet.connect(at);
  t.after(() => socket.destroy());
  await echo(socket, 'x');
  assert.deepEqual(seen.names, ['listening', 'connection']);
  assert.ok(seen.sockets[0] instanceof repnet.Socket);
});

test("'drop' is seen once, too", async (t) => {
  const seen = await serve(t, repnet, 'on the object', {}, (server) => (server.maxConnections = 0));
  if (Number.parseInt(process.versions.node, 10) < 22)
    return t.skip(notThisNode('maxConnections = 0 is no limit'));
  const socket = repnet.connect({ port: seen.port, host: HOST, replicate: 'flow', peer: 'repnet' });
  socket.on('error', () => {}).resume();
  await once(socket, 'close');
  assert.deepEqual(seen.names, ['listening', 'drop']);
});

test('a stream that a program gives a server by itself stays what it is', async (t) => {
  const seen = await serve(t, repnet, 'on the object', {}, LIMITS['no limit']);
  const own = new net.Socket();
  t.after(() => own.destroy());
  seen.server.emit('connection', own);
  assert.equal(Object.getPrototypeOf(own), net.Socket.prototype);
});
