/** Where the two connections of a flow go and come from: names with several addresses, and source ports that will not do. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import { beforeEach, test } from 'node:test';
import { forgetPeers } from '../dist/client/peers.js';
import repnet from '../dist/index.js';
import { newHandle } from '../dist/net-internals.js';
import { defaults, echo, echoServer, grown, settle, until } from './lib/support.mjs';

const HOST = '127.0.0.1';

beforeEach(() => {
  forgetPeers();
  repnet.resetStats();
  Object.assign(defaults, { waitTimeout: 300, pairTimeout: 300 });
});

const dial = (t, port, options) => {
  const socket = repnet.connect({ host: HOST, port, replicate: 'flow', ...options });
  t.after(() => socket.destroy());
  return socket;
};

/** A resolver that answers with these addresses. */
const resolver = (...addresses) => {
  const all = addresses.map((address) => ({ address, family: net.isIP(address) }));
  return (_, options, done) =>
    options.all ? setImmediate(done, null, all) : setImmediate(done, null, all[0].address, all[0].family);
};

const DUAL = resolver('::1', HOST);

for (const copyDelay of [0, 30])
  for (const peer of ['auto', 'repnet'])
    test(`the first address refuses: both go to the second (copyDelay ${copyDelay}, peer ${peer})`, async (t) => {
      const { port, sockets } = await echoServer(t);
      for (let i = 1; i <= 3; i++) {
        const options = { host: 'a.name', lookup: DUAL, copyDelay, peer };
        const socket = dial(t, port, options);
        // A hedged one is only made if the first is slow to bring something.
        if (copyDelay === 0) assert.equal(await echo(socket, `flow ${i}`), `flow ${i}`);
        await until(() => repnet.info(socket).paired, 'the second connection has joined the first');
        assert.equal(socket.remoteAddress, HOST);
        assert.equal(sockets.length, i);
      }
      assert.equal(repnet.stats().foreignPeers, 0);
      assert.equal(repnet.stats().flowsPlain, 0);
    });

test('the first address answers, and the second is not asked', async (t) => {
  const { port, sockets } = await echoServer(t);
  const attempts = [];
  const socket = dial(t, port, { host: 'a.name', lookup: resolver(HOST, '::1') });
  socket.on('lookup', (_, address) => attempts.push(address));
  assert.equal(await echo(socket, 'x'), 'x');
  await until(() => repnet.info(socket).paired);
  assert.deepEqual(attempts, [HOST, '::1']);
  assert.equal(sockets.length, 1);
});

test('every address refuses: one error, as net tells it', async () => {
  const server = net.createServer();
  await new Promise((resolve) => server.listen(0, HOST, resolve));
  const { port } = server.address();
  const closed = once(server, 'close');
  server.close();
  await closed;
  const seen = [];
  for (const api of [net, repnet]) {
    const [error] = await once(api.connect({ host: 'a.name', port, lookup: DUAL }), 'error');
    seen.push([error.name, error.code, error.errors?.map(({ code, address }) => [code, address])]);
  }
  assert.deepEqual(seen[1], seen[0]);
});

test('a plain server at the address that was chosen is known for one', async (t) => {
  const server = net.createServer((socket) => socket.on('error', () => {}).pipe(socket));
  await new Promise((resolve) => server.listen(0, HOST, resolve));
  t.after(() => server.close());
  const { port } = server.address();
  assert.equal(await echo(dial(t, port, { host: 'a.name', lookup: DUAL }), 'one'), 'one');
  await until(() => repnet.stats().foreignPeers === 1);
  assert.equal(await echo(dial(t, port, { host: 'a.name', lookup: DUAL }), 'two'), 'two');
  assert.equal(repnet.stats().flowsPlain, 1);
});

/** Every source port is refused with `status` when it is bound, from now on until the test is over. */
function refuseToBind(t, status) {
  const native = Object.getPrototypeOf(newHandle());
  const { bind, bind6 } = native;
  let refused = 0;
  native.bind = native.bind6 = () => {
    refused++;
    return status;
  };
  t.after(() => Object.assign(native, { bind, bind6 }));
  return () => refused;
}

for (const [code, status] of Object.entries({ EADDRINUSE: -98, EADDRNOTAVAIL: -99 }))
  for (const host of [HOST, 'a.name'])
    test(`${code} for every source port that is tried: ${host} is connected to as net does`, async (t) => {
      const { port, sockets } = await echoServer(t);
      const refused = refuseToBind(t, status);
      const log = [];
      const socket = dial(t, port, { host, lookup: resolver(HOST) });
      for (const event of ['connect', 'ready', 'error', 'close']) socket.on(event, () => log.push(event));
      assert.equal(await echo(socket, 'written before it was connected'), 'written before it was connected');
      await settle();
      assert.deepEqual(log, ['connect', 'ready']);
      assert.ok(refused() > 1);
      assert.equal(sockets.length, 1);
      const { flowsFlow, flowsSyn, flowsPlain } = repnet.stats();
      assert.deepEqual([repnet.info(socket).mode, flowsFlow + flowsSyn + flowsPlain], [false, 1]);
      const closed = once(socket, 'close');
      socket.end();
      await closed;
    });

for (const localPort of [0, null]) {
  test(`a source port of ${localPort} is none: both connections come from one that is chosen here`, async (t) => {
    const { port, sockets } = await echoServer(t);
    await grown();
    const socket = dial(t, port, { localPort, peer: 'repnet' });
    assert.equal(await echo(socket, 'asked once'), 'asked once');
    await until(() => repnet.info(socket).paired || sockets.length > 1, 'the server has both connections');
    assert.deepEqual(
      sockets.map(({ remotePort }) => remotePort),
      [socket.localPort],
    );
  });

  test(`a source port of ${localPort} is none: that the one chosen here is taken is no error`, async (t) => {
    const { port } = await echoServer(t);
    refuseToBind(t, -98);
    const socket = dial(t, port, { localPort, peer: 'repnet' });
    assert.equal(await echo(socket, 'x'), 'x');
  });
}

test("a source port that is the application's own and is taken: its error, as net tells it", async (t) => {
  const { port } = await echoServer(t);
  refuseToBind(t, -98);
  const seen = [];
  for (const api of [net, repnet]) {
    const socket = api.connect({ host: HOST, port, localPort: 4_321, replicate: 'flow' });
    const [{ code, syscall, address, port: to }] = await once(socket, 'error');
    seen.push([code, syscall, address, to]);
  }
  assert.deepEqual(seen[1], seen[0]);
});
