/** Servers of Node's own that take their connections from repnet: what they were made with holds. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import net from 'node:net';
import { after, beforeEach, test } from 'node:test';
import { adopt } from 'repnet/http';
import { newHandle } from '../../dist/net-internals.js';
import { listen } from './support/servers.mjs';

const HOST = '127.0.0.1';

/** What was set on connections of this process, in order. */
const told = [];
const native = Object.getPrototypeOf(newHandle());
for (const name of ['setNoDelay', 'setKeepAlive']) {
  const real = native[name];
  native[name] = function (...args) {
    told.push([name, ...args.filter((arg) => arg !== undefined)]);
    return real.apply(this, args);
  };
  after(() => {
    native[name] = real;
  });
}
beforeEach(() => told.splice(0));

/** The server's side of a connection to the server, and the client's. */
async function accept(t, server) {
  const port = await listen(t, server);
  const client = net.connect(port, HOST).on('error', () => {});
  t.after(() => client.destroy());
  const [accepted] = await once(server, 'connection');
  return { accepted, client, port };
}

for (const [name, server, options, expected] of [
  ['noDelay, which is the default of http', () => http.createServer(), {}, [['setNoDelay', true]]],
  [
    'keepAlive and its delay',
    () => http.createServer({ noDelay: false, keepAlive: true, keepAliveInitialDelay: 4_000 }),
    {},
    [['setKeepAlive', true, 4]],
  ],
  ['the options of adopt() before them', () => http.createServer(), { noDelay: false }, []],
]) {
  test(`what an adopted server was made with holds: ${name}`, async (t) => {
    await accept(t, adopt(server(), options));
    assert.deepEqual(told, expected);
  });
}

test('what an adopted server was made with holds: highWaterMark', async (t) => {
  const { accepted } = await accept(t, adopt(http.createServer({ highWaterMark: 1_234 })));
  assert.deepEqual([accepted.readableHighWaterMark, accepted.writableHighWaterMark], [1_234, 1_234]);
});

test('what an adopted server was made with holds: half-open connections', async (t) => {
  const { accepted } = await accept(t, adopt(http.createServer()));
  assert.equal(accepted.allowHalfOpen, true);
});

test('what an adopted server was made with holds: maxConnections, set before', async (t) => {
  const server = http.createServer();
  server.maxConnections = 1;
  server.dropMaxConnection = true;
  const { port } = await accept(t, adopt(server));
  assert.deepEqual([server.maxConnections, server.dropMaxConnection], [1, true]);
  const second = net.connect(port, HOST).on('error', () => {});
  t.after(() => second.destroy());
  const [dropped] = await once(server, 'drop');
  assert.equal(dropped.localPort, port);
});
