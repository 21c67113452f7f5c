import assert from 'node:assert/strict';
import { once } from 'node:events';
import nodeHttps from 'node:https';
import net from 'node:net';
import { beforeEach, test } from 'node:test';
import nodeTls from 'node:tls';
import { Socket } from 'repnet';
import { HttpsAgent } from 'repnet/http';
import * as tls from 'repnet/tls';
import { forgetPeers } from '../../dist/client/peers.js';
import { refusingPort } from '../lib/refusing-port.mjs';
import { settle, until } from '../lib/support.mjs';
import { certificate } from './support/certificate.mjs';
import { collect, listen, MODES } from './support/servers.mjs';

const echo = (socket) => socket.pipe(socket);

// A port that came again may have been another server's.
beforeEach(forgetPeers);

for (const replicate of MODES) {
  test(`replicate ${replicate}: TLS carries bytes both ways and ends cleanly`, async (t) => {
    const port = await listen(t, tls.createServer({ ...certificate(), allowHalfOpen: true }, echo));
    const socket = tls.connect({ host: 'localhost', port, ca: certificate().cert, replicate });
    const sent = Buffer.alloc(300_000, 'tls over two connections ');
    socket.end(sent);
    assert.deepEqual(await collect(socket), sent);
    assert.equal(socket.authorized, true);
  });

  test(`replicate ${replicate}: a client of plain tls is served too`, async (t) => {
    const port = await listen(t, tls.createServer({ ...certificate(), allowHalfOpen: true }, echo));
    const socket = nodeTls.connect({ host: 'localhost', port, ca: certificate().cert });
    socket.end('hello');
    assert.equal(String(await collect(socket)), 'hello');
  });

  test(`replicate ${replicate}: a plain tls server is reached`, async (t) => {
    const port = await listen(
      t,
      nodeTls.createServer({ ...certificate(), allowHalfOpen: true }, echo).on('tlsClientError', () => {}),
    );
    const socket = tls.connect({ host: 'localhost', port, ca: certificate().cert, replicate });
    socket.end('hello');
    assert.equal(String(await collect(socket)), 'hello');
  });

  test(`replicate ${replicate}: a certificate that is not trusted is refused`, async (t) => {
    const port = await listen(
      t,
      tls.createServer(certificate(), echo).on('tlsClientError', () => {}),
    );
    const socket = tls.connect({ host: 'localhost', port, replicate });
    const [error] = await once(socket, 'error');
    assert.equal(error.code, 'DEPTH_ZERO_SELF_SIGNED_CERT');
  });

  // The client's last word of the handshake waits for its callback, in which the certificate is refused.
  for (const maxVersion of ['TLSv1.2', 'TLSv1.3'])
    for (const [whose, of] of [
      ['a plain server', nodeTls],
      ['a server of this library', tls],
    ])
      test(`replicate ${replicate}: what ${whose} hears when its certificate is refused, ${maxVersion}`, async (t) => {
        const serve = async (api) => {
          const heard = [];
          const server = api.createServer({ ...certificate(), maxVersion }, (socket) => {
            heard.push('secure');
            socket.on('error', ({ code }) => heard.push(code)).on('close', () => heard.push('close'));
          });
          server.on('tlsClientError', ({ code }) => heard.push(`tlsClientError ${code}`));
          return { heard, port: await listen(t, server) };
        };
        const plain = await serve(nodeTls);
        await once(nodeTls.connect({ host: 'localhost', port: plain.port }), 'error');
        await until(() => plain.heard.length > 0);
        const { heard, port } = await serve(of);
        const peer = of === tls ? 'repnet' : 'auto';
        await once(tls.connect({ host: 'localhost', port, replicate, peer }), 'error');
        await until(() => heard.length > 0);
        await settle();
        assert.deepEqual(heard, plain.heard);
      });

  test(`replicate ${replicate}: a certificate for another name is refused`, async (t) => {
    const port = await listen(
      t,
      tls.createServer(certificate(), echo).on('tlsClientError', () => {}),
    );
    const socket = tls.connect({
      host: 'localhost',
      port,
      servername: 'other.example',
      ca: certificate().cert,
      replicate,
    });
    const [error] = await once(socket, 'error');
    assert.equal(error.code, 'ERR_TLS_CERT_ALTNAME_INVALID');
  });

  // Told that the server is of this library, RepSYN races to its second port.
  test(`replicate ${replicate}: both ends know each other's address`, async (t) => {
    const server = tls.createServer(certificate());
    const port = await listen(t, server);
    const host = '127.0.0.1';
    const servername = 'localhost';
    const socket = tls.connect({
      host,
      servername,
      port,
      ca: certificate().cert,
      replicate,
      peer: 'repnet',
    });
    const [[accepted]] = await Promise.all([once(server, 'secureConnection'), once(socket, 'secureConnect')]);
    assert.deepEqual([socket.remoteAddress, socket.remotePort], ['127.0.0.1', port]);
    assert.deepEqual([accepted.localAddress, accepted.localPort], ['127.0.0.1', port]);
    assert.deepEqual([accepted.remoteAddress, accepted.remotePort], ['127.0.0.1', socket.localPort]);
    socket.end();
    accepted.end();
    await once(socket.resume(), 'close');
  });

  test(`replicate ${replicate}: a session is resumed`, async (t) => {
    const port = await listen(t, tls.createServer({ ...certificate(), allowHalfOpen: true }, echo));
    const options = { host: 'localhost', port, ca: certificate().cert, replicate };
    const first = tls.connect(options);
    const [session] = await once(first, 'session');
    first.end();
    await collect(first);
    const second = tls.connect({ ...options, session });
    await once(second, 'secureConnect');
    assert.equal(second.isSessionReused(), true);
    second.end();
    await collect(second);
  });

  test(`replicate ${replicate}: an aborted signal ends the connection`, async (t) => {
    const port = await listen(t, tls.createServer(certificate(), echo));
    const controller = new AbortController();
    const socket = tls.connect({
      host: 'localhost',
      port,
      ca: certificate().cert,
      replicate,
      signal: controller.signal,
    });
    await once(socket, 'secureConnect');
    controller.abort();
    const [error] = await once(socket, 'error');
    assert.equal(error.name, 'AbortError');
  });
}

/** The events of a client up to 'close', with what that is told. */
async function eventsOf(socket) {
  const events = [];
  for (const event of ['connect', 'ready', 'secureConnect', 'end'])
    socket.on(event, () => events.push(event));
  socket.on('error', ({ code }) => events.push(code));
  await new Promise((resolve) => socket.resume().on('close', (failed) => resolve(events.push(failed))));
  return events;
}

for (const replicate of MODES) {
  test(`replicate ${replicate}: the events of a connection and of a refused one are those of tls`, async (t) => {
    const served = tls.createServer(certificate(), (socket) => socket.end('bye'));
    const port = await listen(t, served);
    const seen = [];
    for (const [api, options] of [
      [nodeTls, {}],
      [tls, { replicate, peer: 'repnet' }],
    ]) {
      const dial = (to) =>
        api.connect({
          host: '127.0.0.1',
          port: to,
          ca: certificate().cert,
          servername: 'localhost',
          ...options,
        });
      seen.push([await eventsOf(dial(port)), await eventsOf(dial(refusingPort(t)))]);
    }
    assert.deepEqual(seen[0], [
      ['connect', 'ready', 'secureConnect', 'end', false],
      ['ECONNREFUSED', true],
    ]);
    assert.deepEqual(seen[1], seen[0]);
  });
}

test('connect takes what tls.connect takes: a port, a host, options and a listener, in every overload', async (t) => {
  const port = await listen(
    t,
    tls.createServer(certificate(), (socket) => socket.end('bye')),
  );
  const options = { ca: certificate().cert, servername: 'localhost' };
  const host = 'localhost';
  for (const args of [
    [port, options],
    [port, host, options],
    [{ ...options, port, host }],
    [String(port), options],
  ]) {
    const called = new Promise((resolve) => {
      t.after(() => socket.destroy());
      const socket = tls.connect(...args, () => resolve(socket));
    });
    assert.equal(String(await collect(await called)), 'bye', String(args));
  }
});

test('a server made with a listener alone speaks TLS', async (t) => {
  const server = tls.createServer((socket) => socket.end('hello'));
  server.setSecureContext(certificate());
  const port = await listen(t, server);
  const socket = nodeTls.connect({ host: 'localhost', port, ca: certificate().cert });
  assert.equal(String(await collect(socket)), 'hello');
});

for (const [name, ask] of [
  ['tls.connect', (options) => tls.connect(options)],
  ['a request by HttpsAgent', ({ agent, ...options }) => nodeHttps.get({ ...options, agent: agent() })],
]) {
  test(`${name} with a certificate that is none throws, and leaves no connection open`, async (t) => {
    const port = await listen(t, net.createServer());
    const destroy = t.mock.method(Socket.prototype, 'destroy');
    const options = { host: '127.0.0.1', port, cert: 'none', key: 'none', replicate: false };
    assert.throws(() => ask({ ...options, agent: () => new HttpsAgent() }), { code: /^ERR_OSSL_/ });
    const below = destroy.mock.calls.map((call) => call.this);
    assert.deepEqual(
      below.map((socket) => [socket instanceof Socket, socket.destroyed]),
      [[true, true]],
    );
  });
}
