/** Programs that name the package where they named net: an instance is one whoever made the socket. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import http from 'node:http';
import net from 'node:net';
import { test } from 'node:test';
import imported from '../dist/index.js';

test("sockets and servers that Node's own modules make are instances of Socket and Server", async (t) => {
  const server = http.createServer((request, response) => response.end(String(isSocket(request.socket))));
  const isSocket = (socket) => socket instanceof imported.Socket;
  t.after(() => server.close());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  assert.ok(server instanceof imported.Server);
  const [response] = await once(http.get({ port: server.address().port, host: '127.0.0.1' }), 'response');
  assert.ok(isSocket(response.socket));
  const [said] = await once(response, 'data');
  assert.equal(String(said), 'true');
});

test('other values are no instances, and subclasses are told from one another', () => {
  class One extends imported.Socket {}
  class Other extends imported.Socket {}
  const one = new One();
  assert.ok(one instanceof One && one instanceof imported.Socket && one instanceof net.Socket);
  for (const value of [new Other(), new imported.Socket(), new net.Socket()])
    assert.ok(!(value instanceof One));
  for (const value of [undefined, null, 1, 'x', {}, new net.Server()])
    assert.ok(!(value instanceof imported.Socket));
});
