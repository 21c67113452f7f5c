import assert from 'node:assert/strict';
import nodeHttp from 'node:http';
import net from 'node:net';
import { test } from 'node:test';
import { createHttpsServer, createServer } from 'repnet/http';
import { connector } from 'repnet/undici';
import { Agent, Pool, request } from 'undici';
import { certificate } from './support/certificate.mjs';
import { listen, MODES } from './support/servers.mjs';

const hello = (incoming, response) => response.end(`hello ${incoming.url}`);

function dispatcher(t, options, agentOptions = {}) {
  const agent = new Agent({ ...agentOptions, connect: connector(options) });
  t.after(() => agent.destroy());
  return agent;
}

for (const replicate of MODES) {
  test(`replicate ${replicate}: undici's request over a repnet server`, async (t) => {
    const port = await listen(t, createServer({}, hello));
    const agent = dispatcher(t, { replicate });
    for (const path of ['/1', '/2', '/3']) {
      const { body } = await request(`http://127.0.0.1:${port}${path}`, { dispatcher: agent });
      assert.equal(await body.text(), `hello ${path}`);
    }
  });

  test(`replicate ${replicate}: a pool of connections to a plain server`, async (t) => {
    const port = await listen(t, nodeHttp.createServer(hello));
    const pool = new Pool(`http://127.0.0.1:${port}`, { connections: 8, connect: connector({ replicate }) });
    t.after(() => pool.destroy());
    const answers = await Promise.all(
      Array.from({ length: 100 }, async (_, i) =>
        (await pool.request({ path: `/${i}`, method: 'GET' })).body.text(),
      ),
    );
    assert.deepEqual(
      answers,
      Array.from({ length: 100 }, (_, i) => `hello /${i}`),
    );
  });

  test(`replicate ${replicate}: https, sessions resumed`, async (t) => {
    const reused = [];
    const server = createHttpsServer(certificate(), (incoming, response) => {
      reused.push(incoming.socket.isSessionReused());
      response.setHeader('connection', 'close');
      hello(incoming, response);
    });
    const port = await listen(t, server);
    const agent = dispatcher(t, { replicate, tls: { ca: certificate().cert } });
    for (let i = 0; i < 2; i++) {
      const { body } = await request(`https://localhost:${port}/s`, { dispatcher: agent });
      assert.equal(await body.text(), 'hello /s');
    }
    assert.deepEqual(reused, [false, true]);
  });

  test(`replicate ${replicate}: a certificate that is not trusted is an error of the request`, async (t) => {
    const port = await listen(
      t,
      createHttpsServer(certificate(), hello).on('tlsClientError', () => {}),
    );
    const agent = dispatcher(t, { replicate });
    await assert.rejects(request(`https://localhost:${port}/`, { dispatcher: agent }), {
      code: 'DEPTH_ZERO_SELF_SIGNED_CERT',
    });
  });

  test(`replicate ${replicate}: nobody listening is an error of the request`, async (t) => {
    const agent = dispatcher(t, { replicate });
    await assert.rejects(request('http://127.0.0.1:1/', { dispatcher: agent }), { code: 'ECONNREFUSED' });
  });
}

test('a handshake that does not come is a connect timeout', async (t) => {
  const port = await listen(
    t,
    net.createServer(() => {}),
  );
  const agent = dispatcher(t, { replicate: false, timeout: 100 });
  await assert.rejects(request(`https://127.0.0.1:${port}/`, { dispatcher: agent }), {
    code: 'UND_ERR_CONNECT_TIMEOUT',
  });
});

test('a connect timeout of 0 is none', async (t) => {
  const port = await listen(t, net.createServer());
  const begun = t.mock.method(globalThis, 'setTimeout');
  const connect = connector({ replicate: false, timeout: 0 });
  const socket = await new Promise((resolve) =>
    connect({ protocol: 'http:', hostname: '127.0.0.1', port: `${port}` }, (_error, made) => resolve(made)),
  );
  socket.destroy();
  assert.deepEqual(
    begun.mock.calls.map(({ arguments: [, delay] }) => delay),
    [],
  );
});
