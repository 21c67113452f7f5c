/** Behaviour of replicated flows as an application, or a look at the wire, sees it. */
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import http from 'node:http';
import net from 'node:net';
import { before, beforeEach, test } from 'node:test';
import { forgetPeers } from '../dist/client/peers.js';
import { nextPort } from '../dist/client/ports.js';
import { Flow } from '../dist/flow/flow.js';
import { Leg } from '../dist/flow/leg.js';
import { PRIMARY, REPLICA } from '../dist/flow/machine.js';
import repnet from '../dist/index.js';
import { controlRecord, Record } from '../dist/wire.js';
import './lib/far-away.mjs';
import { memoryLeg, newFlow } from './lib/memory-leg.mjs';
import { movedClock } from './lib/moved-clock.mjs';
import { data, defaults, echo, echoServer, messageOf, settle, until } from './lib/support.mjs';

before(() => {
  Object.assign(defaults, { waitTimeout: 300, pairTimeout: 500 });
});
beforeEach(() => {
  forgetPeers();
  repnet.resetStats();
});

const dial = (t, port, options = {}) => {
  const socket = repnet.connect({ host: '127.0.0.1', port, replicate: 'flow', peer: 'repnet', ...options });
  t.after(() => socket.destroy());
  return socket;
};

test('one connection event, and the addresses of the first port, on both sides', async (t) => {
  const { sockets, port } = await echoServer(t);
  const socket = dial(t, port);
  assert.equal(await echo(socket, 'hello'), 'hello');
  await until(() => repnet.stats().flowsPaired === 1);
  assert.equal(sockets.length, 1);
  assert.equal(socket.remotePort, port);
  assert.equal(sockets[0].localPort, port);
  assert.equal(sockets[0].remotePort, socket.localPort);
  assert.ok(socket instanceof net.Socket && sockets[0] instanceof repnet.Socket);
  assert.equal(socket.bytesRead, 5);
  assert.equal(socket.bytesWritten, 5);
});

test('on a kept-alive connection each message is doubled again, also after one that outgrew the threshold', async (t) => {
  const { port } = await echoServer(t, { threshold: 10_000 });
  const socket = dial(t, port, { threshold: 10_000 });
  await echo(socket, 'first');
  await until(() => repnet.stats().flowsPaired === 1);
  await settle();
  for (let i = 0; i < 3; i++) {
    const before = repnet.stats().bytesDoubled;
    await echo(socket, 'x'.repeat(1_000));
    assert.equal(repnet.stats().bytesDoubled - before, 2_000, 'request and reply');
  }
  const before = repnet.stats().bytesDoubled;
  await echo(socket, 'y'.repeat(200_000));
  assert.ok(repnet.stats().bytesDoubled - before < 250_000, 'the elephant is not doubled throughout');
  await settle();
  const after = repnet.stats().bytesDoubled;
  await echo(socket, 'z'.repeat(500));
  assert.ok(repnet.stats().bytesDoubled > after, 'doubled again');
});

test('a plain client of a RepNet server, and a RepNet client of a plain server', async (t) => {
  const { port } = await echoServer(t);
  const plain = net.connect({ host: '127.0.0.1', port });
  t.after(() => plain.destroy());
  assert.equal(await echo(plain, 'plain client'), 'plain client');

  const server = net.createServer((s) => s.on('error', () => {}).pipe(s)).listen(0, '127.0.0.1');
  t.after(() => server.close());
  await until(() => server.listening);
  const socket = dial(t, server.address().port, { peer: 'auto' });
  assert.equal(await echo(socket, 'plain server'), 'plain server');
});

test('RepSYN to an unmodified server: one connection carries the flow, the other is closed without a byte', async (t) => {
  const accepted = [];
  const server = net.createServer((s) => {
    const seen = { bytes: 0, closed: false };
    accepted.push(seen);
    s.on('error', () => {});
    s.on('close', () => {
      seen.closed = true;
    });
    s.on('data', (d) => {
      seen.bytes += d.length;
      s.write(d);
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  const socket = dial(t, server.address().port, { replicate: 'syn', peer: 'plain' });
  assert.equal(await echo(socket, 'once'), 'once');
  await until(() => accepted.filter((s) => !s.closed).length === 1, 'the loser is closed');
  assert.deepEqual(
    accepted.map((s) => s.bytes).filter((n) => n > 0),
    [4],
  );
});

test("RepSYN: a socket that is destroyed in its 'connect' listener leaves no connection open", async (t) => {
  const accepted = [];
  const server = net
    .createServer((s) => accepted.push(s.on('error', () => {}).resume()))
    .listen(0, '127.0.0.1');
  await until(() => server.listening);
  t.after(() => server.close());
  const socket = dial(t, server.address().port, { replicate: 'syn', peer: 'plain' });
  socket.once('connect', () => socket.destroy());
  await until(() => accepted.length === 2 && accepted.every((s) => s.closed), 'both are closed');
});

test('RepSYN to a RepNet server shows the application one connection per flow', async (t) => {
  const { sockets, port } = await echoServer(t);
  for (let i = 0; i < 5; i++) {
    const socket = dial(t, port, { replicate: 'syn' });
    assert.equal(await echo(socket, `flow ${i}`), `flow ${i}`);
    assert.equal(socket.bytesWritten, 6);
    assert.equal(socket.remotePort, port);
  }
  await settle();
  assert.equal(sockets.length, 5);
  assert.ok(sockets.every((s) => s.localPort === port && s.bytesRead === 6));
});

test('hedged: the second connection is not made if the first answers in time', async (t) => {
  const { port } = await echoServer(t);
  // However long the answer takes on a busy machine, the delay is not over when it comes.
  const clock = movedClock();
  t.after(clock.stop);
  const socket = dial(t, port, { copyDelay: 150 });
  assert.equal(await echo(socket, 'quick'), 'quick');
  clock.tick(250);
  assert.equal(await echo(socket, 'still'), 'still');
  assert.deepEqual([repnet.stats().copiesIssued, repnet.stats().flowsPaired], [0, 0]);
});

test('hedged: the second connection is made if the first is slow', async (t) => {
  const server = repnet.createServer((s) => s.on('error', () => {})).listen(0, '127.0.0.1');
  await until(() => server.listening);
  t.after(() => server.close());
  const socket = dial(t, server.address().port, { copyDelay: 20 });
  socket.on('error', () => {});
  socket.write('no answer');
  await until(() => repnet.stats().flowsPaired === 1);
  socket.destroy();
});

test('a predicate chooses by target, and a bad choice is named', async (t) => {
  const { port } = await echoServer(t);
  const asked = [];
  const socket = dial(t, port, {
    replicate: (target) => {
      asked.push(target);
      return false;
    },
  });
  assert.equal(await echo(socket, 'x'), 'x');
  assert.deepEqual(asked, [{ host: '127.0.0.1', port, localPort: 0 }]);
  assert.throws(() => dial(t, port, { replicate: 'twice' }), {
    code: 'ERR_REPNET_OPTION',
    message: /'twice'/,
  });
  assert.throws(() => dial(t, port, { replicaPort: 0 }), {
    code: 'ERR_REPNET_OPTION',
    message: /replicaPort/,
  });
});

test('back-pressure: an application that does not read stops the sender', async (t) => {
  const server = repnet.createServer((s) => s.on('error', () => {}).pause()).listen(0, '127.0.0.1');
  await until(() => server.listening);
  t.after(() => server.close());
  const socket = dial(t, server.address().port);
  socket.on('error', () => {});
  const chunk = Buffer.alloc(1024 * 1024);
  for (let i = 0; i < 64; i++) socket.write(chunk);
  await until(() => socket.bytesWritten > 0 && socket.writableLength > 0);
  await settle();
  assert.ok(socket.writableLength > 32 * 1024 * 1024, `${socket.writableLength} bytes wait at the sender`);
  socket.destroy();
});

test('resetAndDestroy is ECONNRESET at the peer, once, whatever the copies', async (t) => {
  const { sockets, port } = await echoServer(t);
  const socket = dial(t, port);
  await echo(socket, 'x');
  await until(() => repnet.stats().flowsPaired === 1);
  const errors = [];
  sockets[0].on('error', (e) => errors.push(e.code));
  socket.resetAndDestroy();
  await until(() => sockets[0].destroyed);
  await settle();
  assert.deepEqual(errors, ['ECONNRESET']);
});

test('a connection that is given up while its FIN waits behind unread bytes is closed', async (t) => {
  let accepted;
  const server = net.createServer((s) => {
    accepted = s.pause().on('error', () => {});
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  const socket = net.connect({ host: '127.0.0.1', port: server.address().port, allowHalfOpen: true });
  await until(() => accepted !== undefined && !socket.connecting);
  const leg = Leg.of(socket, 0, { legData: () => true, legFin() {}, legLost() {} });
  leg.send([Buffer.alloc(32 * 1024 * 1024)], () => {});
  leg.finish(() => {});
  leg.abort();
  accepted.resume();
  await until(() => accepted.closed, 'the peer sees the connection closed');
});

test('a socket that is destroyed before its end is sent closes its connection at once, as with net', () => {
  const flow = new Flow({ deliver: () => true, destroy() {}, touch() {} }, { threshold: 1_000, lull: 50 });
  const seen = [];
  const first = Object.assign(memoryLeg(0), {
    finish: () => seen.push('end'),
    whenFinished: () => seen.push('waits'),
    close: () => seen.push('closed'),
  });
  flow.open(first);
  flow.end(() => {});
  flow.close(false);
  assert.deepEqual(seen, ['end', 'closed']);
});

/** Listens on the port that the next flow would take; of those that other processes hold none is taken. */
async function holdNextPort() {
  for (;;) {
    // The ports go round: what followed on the first follows on it again.
    const [first, taken] = [nextPort(), nextPort()];
    while (nextPort() !== first);
    const holder = net.createServer();
    try {
      await once(holder.listen(taken, '127.0.0.1'), 'listening');
      return { holder, taken };
    } catch (error) {
      if (error.code !== 'EADDRINUSE') throw error;
      nextPort();
    }
  }
}

test('a source port that is taken is no error: the flow takes another', async (t) => {
  const connections = () =>
    process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length;
  const before = connections();
  const { port } = await echoServer(t);
  const { holder, taken } = await holdNextPort();
  t.after(() => holder.close());
  const socket = dial(t, port);
  await echo(socket, 'x');
  // More than once where the port after it is another process's.
  assert.ok(repnet.stats().portRetries >= 1);
  assert.notEqual(socket.localPort, taken);
  socket.end();
  await until(() => connections() <= before, 'nothing of the first attempt stays open');
});

test('in a cluster a flow reaches one worker, once', async (t) => {
  const child = fork(new URL('lib/cluster-server.mjs', import.meta.url));
  t.after(() => child.kill());
  const port = await new Promise((resolve) => child.once('message', resolve));
  for (let i = 0; i < 40; i++) {
    const socket = dial(t, port);
    assert.equal(await echo(socket, `request ${i}`), `request ${i}`);
    socket.end();
  }
  child.send('count');
  const connections = await new Promise((resolve) => child.once('message', resolve));
  assert.equal(connections, 40);
});

test('in a cluster a POST of 300 KB arrives whole, whichever worker its second connection reaches', async (t) => {
  const child = fork(new URL('lib/http-cluster.mjs', import.meta.url));
  t.after(() => child.disconnect());
  const port = await messageOf(child);
  const body = Buffer.alloc(300_000, 'x');
  const post = () =>
    new Promise((resolve, reject) => {
      const request = http.request({ method: 'POST', createConnection: () => dial(t, port) });
      request.on('error', reject).on('response', async (response) => {
        resolve(Buffer.concat(await response.toArray()).toString());
      });
      request.end(body);
    });
  assert.deepEqual(await Promise.all(Array.from({ length: 50 }, post)), Array(50).fill('300000'));
});

test('a late duplicate and control records are no activity, and do not restart the idle timer', () => {
  const flow = newFlow(1_000);
  let touched = 0;
  flow.outer.touch = () => touched++;
  const [first, second] = [memoryLeg(PRIMARY), memoryLeg(REPLICA)];
  flow.open(first);
  flow.open(second);
  flow.legData(first, Buffer.from('request'));
  assert.equal(touched, 1);
  flow.legData(second, data(0, 'request'));
  flow.legData(second, controlRecord(Record.report, 0));
  assert.equal(touched, 1);
  flow.legData(second, data(0, 'request, and more'));
  assert.equal(touched, 2);
});
