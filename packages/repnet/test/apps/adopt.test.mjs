/** Servers of Node's own that take their connections from repnet: what they were made with holds, and they close as net's do. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import net from 'node:net';
import { after, beforeEach, test } from 'node:test';
import tls from 'node:tls';
import { adopt } from 'repnet/http';
import { newHandle } from '../../dist/net-internals.js';
import { settle, until } from '../lib/support.mjs';
import { certificate } from './support/certificate.mjs';
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

test('a socket names the server that the application made, not the one in front of it', async (t) => {
  const server = adopt(http.createServer());
  const { accepted } = await accept(t, server);
  assert.deepEqual([accepted.server === server, accepted._server === server], [true, true]);
});

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

test('a second close() of an adopted server is told that it does not run, when the first has closed it', async (t) => {
  const server = adopt(http.createServer());
  const { client } = await accept(t, server);
  client.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n'); // not idle: newer versions of Node end what has asked nothing
  await once(server, 'request');
  const log = [];
  server.on('close', () => log.push('close'));
  server.close((error) => log.push(['first', error?.code]));
  server.close((error) => log.push(['second', error?.code]));
  await settle();
  assert.deepEqual(log, []);
  client.destroy();
  await until(() => log.length === 3, 'it is closed');
  assert.deepEqual(log, ['close', ['first', undefined], ['second', 'ERR_SERVER_NOT_RUNNING']]);
});

test('an adopted server that a signal closes ends idle connections and says that it is closed', async (t) => {
  const server = adopt(http.createServer((_request, response) => response.end('x')));
  const stop = new AbortController();
  const port = await listen(t, server, { signal: stop.signal });
  const agent = new http.Agent({ keepAlive: true });
  t.after(() => agent.destroy());
  const [response] = await once(http.get({ host: HOST, port, agent }), 'response');
  await once(response.resume(), 'end');
  const closed = once(server, 'close');
  stop.abort();
  await closed;
  assert.equal(server.listening, false);
});

for (const [name, make] of [
  ['http', () => http.createServer()],
  ['tls', () => tls.createServer(certificate())],
]) {
  test(`an adopted server of ${name} that is closed can be disposed of`, async () => {
    const server = adopt(make());
    server.listen(0, HOST);
    await once(server, 'listening');
    await server[Symbol.asyncDispose]();
    await server[Symbol.asyncDispose]();
  });
}
