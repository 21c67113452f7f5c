import assert from 'node:assert/strict';
import { once } from 'node:events';
import nodeHttp from 'node:http';
import nodeHttps from 'node:https';
import net from 'node:net';
import { test } from 'node:test';
import { Agent, adopt, createHttpsServer, createServer, HttpsAgent } from 'repnet/http';
import { certificate } from './support/certificate.mjs';
import { collect, listen, MODES } from './support/servers.mjs';

/** Answers with the method, path and body it was sent. */
async function reflect(request, response) {
  const body = await collect(request);
  response.setHeader('x-connection', String(request.socket.remotePort));
  response.end(Buffer.concat([Buffer.from(`${request.method} ${request.url} `), body]));
}

async function fetchText(module, options, body) {
  const request = module.request({ host: 'localhost', ...options }).end(body);
  const [response] = await once(request, 'response');
  return {
    text: String(await collect(response)),
    connection: response.headers['x-connection'],
    status: response.statusCode,
  };
}

for (const replicate of MODES) {
  test(`replicate ${replicate}: a request and its answer`, async (t) => {
    const port = await listen(t, createServer({}, reflect));
    const agent = new Agent({ replicate });
    t.after(() => agent.destroy());
    const { text } = await fetchText(nodeHttp, { port, agent, path: '/a', method: 'POST' }, 'body');
    assert.equal(text, 'POST /a body');
  });

  test(`replicate ${replicate}: kept-alive connections are reused`, async (t) => {
    const port = await listen(t, createServer({}, reflect));
    const agent = new Agent({ keepAlive: true, replicate });
    t.after(() => agent.destroy());
    const connections = new Set();
    for (let i = 0; i < 5; i++) {
      const { text, connection } = await fetchText(nodeHttp, { port, agent, path: `/${i}` });
      assert.equal(text, `GET /${i} `);
      connections.add(connection);
    }
    assert.equal(connections.size, 1);
  });

  test(`replicate ${replicate}: long bodies both ways`, async (t) => {
    const port = await listen(t, createServer({}, reflect));
    const agent = new Agent({ keepAlive: true, replicate });
    t.after(() => agent.destroy());
    const body = 'x'.repeat(2_000_000);
    const { text } = await fetchText(nodeHttp, { port, agent, path: '/', method: 'PUT' }, body);
    assert.equal(text, `PUT / ${body}`);
  });

  test(`replicate ${replicate}: many requests at a time`, async (t) => {
    const port = await listen(t, createServer({}, reflect));
    const agent = new Agent({ keepAlive: true, maxSockets: 16, replicate });
    t.after(() => agent.destroy());
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, i) => fetchText(nodeHttp, { port, agent, path: `/${i}` })),
    );
    assert.deepEqual(
      answers.map(({ text }) => text),
      Array.from({ length: 200 }, (_, i) => `GET /${i} `),
    );
  });

  test(`replicate ${replicate}: https`, async (t) => {
    const port = await listen(t, createHttpsServer(certificate(), reflect));
    const agent = new HttpsAgent({ keepAlive: true, ca: certificate().cert, replicate });
    t.after(() => agent.destroy());
    for (const path of ['/1', '/2']) {
      const { text } = await fetchText(nodeHttps, { port, agent, path });
      assert.equal(text, `GET ${path} `);
    }
  });

  test(`replicate ${replicate}: a https server that says nothing is a timeout of the request`, async (t) => {
    const port = await listen(t, net.createServer());
    const agent = new HttpsAgent({ replicate, timeout: 20 });
    t.after(() => agent.destroy());
    const request = nodeHttps.get({ host: 'localhost', port, agent }).on('error', () => {});
    await once(request, 'timeout');
    request.destroy();
  });

  test(`replicate ${replicate}: an ordinary http server is reached`, async (t) => {
    const port = await listen(t, nodeHttp.createServer(reflect));
    const agent = new Agent({ replicate });
    t.after(() => agent.destroy());
    const { text } = await fetchText(nodeHttp, { port, agent, path: '/plain' });
    assert.equal(text, 'GET /plain ');
  });

  test(`replicate ${replicate}: an ordinary http client is served`, async (t) => {
    const port = await listen(t, createServer({}, reflect));
    const { text } = await fetchText(nodeHttp, { port, path: '/plain' });
    assert.equal(text, 'GET /plain ');
  });

  test(`replicate ${replicate}: a broken answer is an error, not a short body`, async (t) => {
    const server = createServer({}, (_request, response) => {
      response.writeHead(200, { 'content-length': 1000 }).write('part');
      setImmediate(() => response.socket.destroy());
    });
    const port = await listen(t, server);
    const agent = new Agent({ replicate });
    t.after(() => agent.destroy());
    await assert.rejects(fetchText(nodeHttp, { port, agent }), { code: 'ECONNRESET' });
  });
}

test('requests that ask for other replication do not share connections', () => {
  const agent = new Agent();
  const kinds = [
    {},
    { replicate: 'syn' },
    { replicate: 'flow' },
    { replicate: false },
    { replicate: 'flow', replicaPort: 7 },
    { replicate: 'flow', threshold: 7 },
    { replicate: 'flow', lull: 7 },
    { replicate: 'flow', copyDelay: 7 },
    { replicate: 'flow', pairTimeout: 7 },
    { replicate: 'flow', loser: 'fin' },
    { replicate: 'flow', peer: 'plain' },
  ];
  for (const [one, where] of [
    [new Agent(), { host: 'a', port: 1 }],
    [new HttpsAgent(), { host: 'a', port: 1 }],
  ]) {
    const names = kinds.map((options) => one.getName({ ...where, ...options }));
    assert.equal(new Set(names).size, kinds.length);
    assert.deepEqual(
      kinds.map((options) => one.getName({ ...where, ...options })),
      names,
    );
    // Not given is not given.
    assert.equal(one.getName({ ...where, replicate: undefined, threshold: null }), names[0]);
  }
  assert.equal(agent.getName({ host: 'a', port: 1 }), new nodeHttp.Agent().getName({ host: 'a', port: 1 }));
});

test('a predicate is the same only if it is the same function, whatever its text', async (t) => {
  const only = (mode) => () => mode;
  const [plain, doubled] = [only(false), only('flow')];
  assert.equal(String(plain), String(doubled));
  const port = await listen(t, createServer({}, reflect));
  const agent = new Agent({ keepAlive: true });
  t.after(() => agent.destroy());
  const connections = [];
  for (const replicate of [plain, doubled, plain, doubled])
    connections.push((await fetchText(nodeHttp, { port, agent, replicate })).connection);
  assert.equal(connections[0], connections[2]);
  assert.equal(connections[1], connections[3]);
  assert.notEqual(connections[0], connections[1]);
});

test('a server that is closed lets requests end and refuses new ones', async (t) => {
  let release;
  const server = createServer({}, (_request, response) => (release = () => response.end('late')));
  const port = await listen(t, server);
  const agent = new Agent({ keepAlive: true });
  t.after(() => agent.destroy());
  const answer = fetchText(nodeHttp, { port, agent });
  await once(server, 'request');
  const closed = new Promise((resolve) => server.close(resolve));
  assert.equal(server.listening, false);
  await assert.rejects(fetchText(nodeHttp, { port }), { code: 'ECONNREFUSED' });
  release();
  assert.equal((await answer).text, 'late');
  agent.destroy();
  await closed;
});

test('closing a server that does not listen says so', async () => {
  const server = createServer();
  const error = await new Promise((resolve) => server.close(resolve));
  assert.equal(error.code, 'ERR_SERVER_NOT_RUNNING');
});

test('both ports in use is an error of the server', async (t) => {
  const port = await listen(t, createServer());
  const second = createServer();
  second.listen(port, '127.0.0.1');
  const [error] = await once(second, 'error');
  assert.equal(error.code, 'EADDRINUSE');
});

test('adopting a server twice is refused', () => {
  const server = adopt(nodeHttp.createServer());
  assert.throws(() => adopt(server), { code: 'ERR_REPNET_ADOPTED' });
});

test('a server of http is disposed of', async () => {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  await server[Symbol.asyncDispose]();
  assert.equal(server.listening, false);
});
