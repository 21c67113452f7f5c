import assert from 'node:assert/strict';
import { once } from 'node:events';
import nodeHttp from 'node:http';
import { test } from 'node:test';
import { Agent, createHttpsServer, createServer, HttpsAgent } from 'repnet/http';
import WebSocket, { WebSocketServer } from 'ws';
import { certificate } from './support/certificate.mjs';
import { listen, MODES } from './support/servers.mjs';

/** An echo for WebSockets on an HTTP server. */
function echoOn(t, server) {
  const sockets = new WebSocketServer({ server });
  sockets.on('connection', (socket) =>
    socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary })),
  );
  t.after(() => sockets.close());
  return server;
}

async function opened(url, options) {
  const socket = new WebSocket(url, options);
  await once(socket, 'open');
  return socket;
}

for (const replicate of MODES) {
  for (const [what, makeServer] of [
    ['a repnet server', () => createServer()],
    ['an ordinary server', () => nodeHttp.createServer()],
  ]) {
    test(`replicate ${replicate}: messages to ${what} come back in order, small and large`, async (t) => {
      const port = await listen(t, echoOn(t, makeServer()));
      const socket = await opened(`ws://127.0.0.1:${port}`, { agent: new Agent({ replicate }) });
      const sent = Array.from({ length: 200 }, (_, i) => Buffer.alloc(i % 20 === 0 ? 150_000 : i + 1, i));
      const received = [];
      const all = new Promise((resolve) =>
        socket.on('message', (data) => received.push(data) === sent.length && resolve()),
      );
      for (const message of sent) socket.send(message);
      await all;
      assert.deepEqual(received, sent);
      socket.close(1000, 'done');
      const [code, reason] = await once(socket, 'close');
      assert.deepEqual([code, String(reason)], [1000, 'done']);
    });
  }

  test(`replicate ${replicate}: a ping-pong of messages on one connection`, async (t) => {
    const port = await listen(t, echoOn(t, createServer()));
    const socket = await opened(`ws://127.0.0.1:${port}`, { agent: new Agent({ replicate }) });
    for (let i = 0; i < 100; i++) {
      socket.send(`message ${i}`);
      const [data] = await once(socket, 'message');
      assert.equal(String(data), `message ${i}`);
    }
    socket.terminate();
    await once(socket, 'close');
  });

  test(`replicate ${replicate}: over TLS`, async (t) => {
    const port = await listen(t, echoOn(t, createHttpsServer(certificate())));
    const agent = new HttpsAgent({ ca: certificate().cert, replicate });
    const socket = await opened(`wss://localhost:${port}`, { agent });
    socket.send('secret');
    const [data] = await once(socket, 'message');
    assert.equal(String(data), 'secret');
    socket.close();
    await once(socket, 'close');
  });
}
