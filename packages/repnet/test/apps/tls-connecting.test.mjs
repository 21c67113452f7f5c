/** tls over a socket of repnet that is still connecting, which is how most programs wrap one: as over a socket of net. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import { beforeEach, test } from 'node:test';
import tls from 'node:tls';
import { forgetPeers } from '../../dist/client/peers.js';
import repnet from '../../dist/index.js';
import { certificate } from './support/certificate.mjs';

const HOST = '127.0.0.1';
const REQUEST = Buffer.alloc(300_000, 'request ');

/** Name, the server's net, options of the client, and what becomes of its socket. */
const WAYS = [
  ['RepFlow', repnet, { replicate: 'flow', peer: 'repnet' }, 'flow'],
  ['RepSYN to the second port', repnet, { replicate: 'syn', peer: 'repnet' }, 'syn'],
  ['RepSYN to an unmodified server', net, { replicate: 'syn', peer: 'plain' }, 'syn'],
  ['RepSYN whose second port nobody has', net, { replicate: 'syn', peer: 'repnet' }, 'syn'],
  ['replication off', repnet, { replicate: false }, false],
];

beforeEach(forgetPeers);

async function serve(t, api, answer) {
  const secure = tls.createServer(certificate(), answer);
  const server = api.createServer((socket) =>
    secure.emit(
      'connection',
      socket.on('error', () => {}),
    ),
  );
  server.listen(0, HOST);
  await once(server, 'listening');
  t.after(() => server.close());
  return server.address().port;
}

function dial(t, port, options) {
  const socket = repnet.connect({ port, host: HOST, ...options }).on('error', () => {});
  assert.ok(socket.connecting);
  const secure = tls.connect({ socket, rejectUnauthorized: false });
  t.after(() => {
    secure.destroy();
    socket.destroy();
  });
  return { socket, secure };
}

/** All of it, until the socket is closed; rejects with an error that comes before. */
async function text(socket) {
  let all = '';
  socket.on('data', (chunk) => (all += chunk));
  await once(socket, 'close');
  return all;
}

for (const [name, api, options, mode] of WAYS) {
  test(`${name}: the server speaks first and ends`, async (t) => {
    const port = await serve(t, api, (socket) => socket.end('Hello'));
    const { socket, secure } = dial(t, port, options);
    assert.equal(await text(secure), 'Hello');
    assert.equal(repnet.info(socket).mode, mode);
  });

  test(`${name}: a long request, and an answer to all of it`, async (t) => {
    const port = await serve(t, api, async (socket) => {
      let got = 0;
      socket.on('data', (chunk) => {
        got += chunk.length;
        if (got === REQUEST.length) socket.end(`${got} bytes`);
      });
    });
    const { secure } = dial(t, port, options);
    secure.write(REQUEST);
    assert.equal(await text(secure), `${REQUEST.length} bytes`);
  });
}

test('a connection that fails is an error of the TLS socket or of the one below it, once', async (t) => {
  const nobody = net.createServer().listen(0, HOST);
  await once(nobody, 'listening');
  const { port } = nobody.address();
  nobody.close();
  for (const replicate of ['flow', 'syn', false]) {
    const { socket, secure } = dial(t, port, { replicate, peer: 'repnet' });
    secure.on('error', () => {});
    const [{ code }] = await once(socket, 'error');
    assert.equal(code, 'ECONNREFUSED');
    if (!secure.destroyed) await once(secure, 'close');
  }
});
