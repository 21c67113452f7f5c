/** HTTP/2 over replicated sockets: servers that are adopted, and sessions over connections of ours, in the clear and over TLS. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import http2 from 'node:http2';
import net from 'node:net';
import { test } from 'node:test';
import repnet from 'repnet';
import { adopt } from 'repnet/http';
import tls from 'repnet/tls';
import { until } from '../lib/support.mjs';
import { certificate } from './support/certificate.mjs';
import { collect, listen, MODES } from './support/servers.mjs';

const LONG = 'x'.repeat(2_000_000);

/** Answers with the method, path and body it was sent. */
async function reflect(request, response) {
  const body = await collect(request);
  response.end(Buffer.concat([Buffer.from(`${request.method} ${request.url} `), body]));
}

async function serve(t, secure) {
  const server = secure ? http2.createSecureServer(certificate(), reflect) : http2.createServer(reflect);
  const sessions = new Set();
  server.on('session', (session) => {
    sessions.add(session);
    session.on('error', () => {}).once('close', () => sessions.delete(session));
  });
  const port = await listen(t, adopt(server));
  t.after(() => {
    for (const session of sessions) session.destroy();
  });
  return { server, sessions, port };
}

function open(t, port, secure, replicate) {
  const target = { host: '127.0.0.1', port, replicate, peer: replicate === false ? 'auto' : 'repnet' };
  const connected = {};
  const session = http2.connect(`${secure ? 'https' : 'http'}://localhost:${port}`, {
    createConnection: () => {
      connected.socket = secure
        ? tls.connect({
            ...target,
            servername: 'localhost',
            ca: certificate().cert,
            ALPNProtocols: ['h2'],
          })
        : repnet.connect(target);
      return connected.socket;
    },
  });
  t.after(() => session.destroy());
  return Object.assign(connected, { session });
}

/**
 * The answer's body. It is read from the start: Node 26.10 takes a stream for broken off whose peer has closed it, though all of the
 * body is there, when an iteration begins later than that (below).
 */
async function fetchText(session, path, body) {
  const request = session.request({ ':path': path, ':method': body === undefined ? 'GET' : 'POST' });
  request.end(body);
  const [[headers], answer] = await Promise.all([once(request, 'response'), collect(request)]);
  assert.equal(headers[':status'], 200);
  return String(answer);
}

for (const secure of [false, true])
  for (const replicate of MODES) {
    const name = `${secure ? 'TLS' : 'in the clear'}, replicate ${replicate}`;

    test(`${name}: a request and its answer, and long bodies both ways`, async (t) => {
      const { port, sessions } = await serve(t, secure);
      const { session } = open(t, port, secure, replicate);
      assert.equal(await fetchText(session, '/a'), 'GET /a ');
      assert.equal(await fetchText(session, '/b', 'body'), 'POST /b body');
      assert.equal(await fetchText(session, '/c', LONG), `POST /c ${LONG}`);
      assert.equal(sessions.size, 1, 'one session for one flow');
    });

    test(`${name}: many streams at a time`, async (t) => {
      const { port } = await serve(t, secure);
      const { session } = open(t, port, secure, replicate);
      const paths = Array.from({ length: 50 }, (_, i) => `/${i}`);
      const answers = await Promise.all(paths.map((path) => fetchText(session, path, path.repeat(1_000))));
      assert.deepEqual(
        answers,
        paths.map((path) => `POST ${path} ${path.repeat(1_000)}`),
      );
    });

    test(`${name}: either side closes, and both are closed`, async (t) => {
      for (const closer of ['client', 'server']) {
        const { port, sessions } = await serve(t, secure);
        const { session } = open(t, port, secure, replicate);
        await fetchText(session, '/');
        const [accepted] = sessions;
        const closed = Promise.all([once(session, 'close'), once(accepted, 'close')]);
        (closer === 'client' ? session : accepted).close();
        await closed;
      }
    });

    test(`${name}: a session that is broken off is an error of its streams, not a short body`, async (t) => {
      const { port, sessions } = await serve(t, secure);
      const { session } = open(t, port, secure, replicate);
      await fetchText(session, '/');
      session.on('error', () => {});
      const request = session.request({ ':path': '/', ':method': 'POST' });
      const over = new Promise((resolve) => {
        request.on('error', () => resolve('error')).on('aborted', () => resolve('aborted'));
        request.on('end', () => resolve('end'));
      });
      request.resume().write('half a body');
      const [accepted] = sessions;
      accepted.socket.on?.('error', () => {});
      accepted.destroy(new Error('broken'));
      assert.notEqual(await over, 'end');
    });
  }

test('RepFlow: the frames are doubled', async (t) => {
  const { port } = await serve(t, false);
  const { session, socket } = open(t, port, false, 'flow');
  const { bytesDoubled } = repnet.stats();
  await fetchText(session, '/');
  while (!repnet.info(socket).paired) await fetchText(session, '/');
  await fetchText(session, '/', 'x'.repeat(1_000));
  assert.ok(repnet.stats().bytesDoubled > bytesDoubled + 1_000);
});

test('an ordinary client is served, and an ordinary server reached', async (t) => {
  const { port } = await serve(t, false);
  const ordinary = http2.connect(`http://127.0.0.1:${port}`);
  t.after(() => ordinary.destroy());
  assert.equal(await fetchText(ordinary, '/a'), 'GET /a ');

  const server = http2.createServer(reflect);
  const other = await listen(t, server);
  assert.ok(server instanceof net.Server);
  for (const replicate of MODES) {
    const session = http2.connect(`http://127.0.0.1:${other}`, {
      createConnection: () => repnet.connect({ host: '127.0.0.1', port: other, replicate }),
    });
    t.after(() => session.destroy());
    assert.equal(await fetchText(session, '/b'), 'GET /b ');
  }
});

/** The body of a stream that its peer has closed before it is read, or the error in its place. */
async function readLate(t, server, connect) {
  const port = await listen(t, server);
  const session = http2.connect(`http://127.0.0.1:${port}`, { createConnection: () => connect(port) });
  t.after(() => session.destroy());
  const request = session.request({ ':path': '/' });
  await until(() => request.closed, 'the stream is closed');
  return collect(request).then(String, ({ code }) => code);
}

test('a body that is read when its stream is closed is what it is over net: an error with Node 26.10', async (t) => {
  const answering = () => http2.createServer((_, response) => response.end('body'));
  const expected = await readLate(t, answering(), (port) => net.connect(port, '127.0.0.1'));
  for (const replicate of MODES) {
    const connect = (port) => repnet.connect({ port, host: '127.0.0.1', replicate, peer: 'repnet' });
    assert.equal(await readLate(t, adopt(answering()), connect), expected, `replicate ${replicate}`);
  }
  if (process.versions.node === '26.10.0') assert.equal(expected, 'ERR_STREAM_PREMATURE_CLOSE');
});
