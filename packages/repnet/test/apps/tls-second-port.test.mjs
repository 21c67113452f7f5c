/**
 * The threat model's way round TLS, tried: plaintext to the second port of a server whose flows are TLS, in every form that
 * the replica protocol has. The application is to see none of it, and to say nothing that is not encrypted.
 */
import assert from 'node:assert/strict';
import https from 'node:https';
import { before, test } from 'node:test';
import repnet from 'repnet';
import * as repnetHttp from 'repnet/http';
import * as repnetTls from 'repnet/tls';
import { ANSWER_BYTES, HelloFlag, Kind, RecordParser } from '../../dist/wire.js';
import { data, grown, hello, OWN_ADDRESS, ownPort, raw, settle, until } from '../lib/support.mjs';
import { certificate } from './support/certificate.mjs';
import { listen } from './support/servers.mjs';

const PLAINTEXT = 'GET /secret HTTP/1.1\r\nHost: localhost\r\n\r\n';
const SECRET = 'the secret of the application';

before(() => {
  Object.assign(repnet.defaults, { waitTimeout: 200, pairTimeout: 200 });
});

/** Servers that would give their secret to anybody who gets through; what reached their application. */
const SERVERS = {
  tls(reached, options) {
    return repnetTls.createServer({ ...certificate(), ...options }, (socket) => {
      reached.push('secureConnection');
      socket.on('data', (chunk) => reached.push(String(chunk))).on('error', () => {});
      socket.write(SECRET);
    });
  },
  https(reached, options) {
    const server = https.createServer(certificate(), (request, response) => {
      reached.push(request.url);
      response.end(SECRET);
    });
    return repnetHttp.adopt(server, options);
  },
};

/** The bytes of a TLS alert, which is all that TLS has to say to somebody who does not speak it. */
const isAlert = (bytes) => bytes.length === 7 && bytes[0] === 0x15;

/** What the application's side of the flow has sent on a framed connection, behind the answer. */
function framed(bytes) {
  const stream = [];
  new RecordParser().feed(Buffer.from(bytes.subarray(ANSWER_BYTES)), {
    onData: (_, piece) => stream.push(Buffer.from(piece)),
    onControl() {},
  });
  return Buffer.concat(stream);
}

async function start(t, kind, options) {
  const reached = [];
  const errors = [];
  const server = SERVERS[kind](reached, options);
  server.on('tlsClientError', ({ code }) => errors.push(code));
  const port = await listen(t, server);
  // Past the time in which a server that has just begun lets no flow start with its second connection.
  await grown();
  return { reached, errors, port };
}

const _early = (extra = 0) => HelloFlag.early | extra;

for (const kind of Object.keys(SERVERS)) {
  test(`${kind}: plaintext without a hello gets nothing`, async (t) => {
    const { reached, port } = await start(t, kind);
    const client = await raw(t, port + 1);
    client.socket.write(PLAINTEXT);
    await until(() => client.closed);
    assert.equal(client.bytes.length, 0);
    assert.deepEqual(reached, []);
  });

  test(`${kind}: plaintext behind the hello of a RepSYN winner is no TLS`, async (t) => {
    const { reached, errors, port } = await start(t, kind);
    const client = await raw(t, port + 1);
    client.socket.write(Buffer.concat([hello(client, port, { kind: Kind.raw }), Buffer.from(PLAINTEXT)]));
    await until(() => client.closed);
    assert.ok(client.bytes.length === 0 || isAlert(client.bytes), client.bytes.toString('latin1'));
    assert.deepEqual(reached, []);
    assert.equal(errors.length, 1);
  });

  test(`${kind}: plaintext in records of a replica that comes alone is no TLS`, async (t) => {
    const { reached, errors, port } = await start(t, kind);
    const client = await raw(t, port + 1);
    client.socket.write(Buffer.concat([hello(client, port), data(0, PLAINTEXT)]));
    await until(() => errors.length === 1, 'TLS refuses it');
    await until(() => client.closed || client.ended, 'the flow ends');
    const said = framed(client.bytes);
    assert.ok(said.length === 0 || isAlert(said), said.toString('latin1'));
    assert.deepEqual(reached, []);
  });

  test(`${kind}: plaintext in records of a replica that joins a silent first connection is no TLS`, async (t) => {
    const { reached, errors, port } = await start(t, kind);
    const localPort = ownPort();
    const first = await raw(t, port, { localPort });
    const second = await raw(t, port + 1, { localPort });
    second.socket.write(Buffer.concat([hello(second, port), data(0, PLAINTEXT)]));
    await until(() => errors.length === 1, 'TLS refuses it');
    await settle();
    for (const said of [first.bytes, framed(second.bytes)])
      assert.ok(said.length === 0 || isAlert(said), said.toString('latin1'));
    assert.deepEqual(reached, []);
  });

  test(`${kind}: records slipped into another's TLS flow need its address, and then break it rather than reach the application`, async (t) => {
    const { reached, port } = await start(t, kind);
    const localPort = ownPort();
    const client = repnetTls.connect({
      host: '127.0.0.1',
      port,
      localAddress: OWN_ADDRESS,
      localPort,
      replicate: false,
      ca: certificate().cert,
      servername: 'localhost',
    });
    t.after(() => client.destroy());
    client.on('error', () => {});
    await new Promise((resolve) => client.once('secureConnect', resolve));
    // The one who may: a user of the same host, from the same port.
    const second = await raw(t, port + 1, { localPort });
    second.socket.write(Buffer.concat([hello(second, port), data(2_000, PLAINTEXT), data(0, PLAINTEXT)]));
    await until(() => second.bytes.length >= ANSWER_BYTES);
    await settle();
    assert.deepEqual(
      reached.filter((what) => what !== 'secureConnection'),
      [],
    );
    assert.equal(second.bytes.includes(SECRET), false);
    assert.equal(second.bytes.includes('HTTP/1.1'), false);
  });
}
