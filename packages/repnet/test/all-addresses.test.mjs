/** A name with several addresses: a race over all of them in each mode, with net's options as with net. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import { beforeEach, test } from 'node:test';
import { forgetPeers } from '../dist/client/peers.js';
import { Resolution } from '../dist/client/resolution.js';
import repnet from '../dist/index.js';
import './lib/far-away.mjs';
import { fullServer } from './lib/full-queue.mjs';
import { notThisNode } from './lib/skips.mjs';
import { defaults, echo, until } from './lib/support.mjs';

const NAME = 'a.name';

beforeEach(() => {
  forgetPeers();
  repnet.resetStats();
  Object.assign(defaults, { waitTimeout: 300, pairTimeout: 1_000 });
});

/** A resolver that answers with these addresses, and counts how often it is asked. */
function resolver(...addresses) {
  const all = addresses.map((address) => ({ address, family: net.isIP(address) }));
  const lookup = (_, options, done) => {
    lookup.asked++;
    if (options.all) setImmediate(done, null, all);
    else setImmediate(done, null, all[0].address, all[0].family);
  };
  lookup.asked = 0;
  return lookup;
}

/** Servers on one port of all these addresses: what connections each had, and from where. */
async function servers(t, api, addresses) {
  for (let attempt = 0; attempt < 50; attempt++) {
    const came = Object.fromEntries(addresses.map((address) => [address, []]));
    const open = [];
    let port = 0;
    try {
      for (const address of addresses) {
        const server = api.createServer((socket) => {
          came[address].push(socket.remoteAddress);
          socket.on('error', () => {}).pipe(socket);
        });
        open.push(server);
        server.listen(port, address);
        await once(server, 'listening');
        port = server.address().port;
      }
    } catch (error) {
      for (const server of open) server.close();
      if (error.code === 'EADDRINUSE') continue;
      throw error;
    }
    t.after(() => {
      for (const server of open) server.close();
    });
    return { port, came };
  }
  throw new Error('no port is free at all addresses');
}

function race(t, port, options) {
  const socket = repnet.connect({ host: NAME, port, replicate: 'syn', peer: 'plain', ...options });
  t.after(() => socket.destroy());
  return socket;
}

for (const [first, second] of [
  ['127.0.0.2', '127.0.0.3'],
  ['127.0.0.2', '::1'],
  ['::1', '127.0.0.2'],
])
  test(`${first} and ${second}: a connection to each, at once`, async (t) => {
    const { port, came } = await servers(t, net, [first, second]);
    const lookup = resolver(first, second);
    const socket = race(t, port, { lookup });
    assert.equal(await echo(socket, 'x'), 'x');
    assert.ok([first, second].includes(socket.remoteAddress));
    await until(() => came[first].length === 1 && came[second].length === 1, 'both were asked');
    assert.equal(lookup.asked, 1);
    const { flowsSyn, copiesIssued } = repnet.stats();
    assert.deepEqual([flowsSyn, copiesIssued], [1, 1]);
  });

test('a server of this library at all addresses: one connection for its application', async (t) => {
  const came = [];
  const server = repnet.createServer((socket) => {
    came.push(socket.localAddress);
    socket.on('error', () => {}).pipe(socket);
  });
  server.listen(0, '0.0.0.0');
  await once(server, 'listening');
  t.after(() => server.close());
  const lookup = resolver('127.0.0.2', '127.0.0.3');
  const socket = race(t, server.address().port, { lookup, peer: 'repnet' });
  assert.equal(await echo(socket, 'x'), 'x');
  assert.deepEqual(came, [socket.remoteAddress]);
  assert.equal(repnet.stats().flowsSyn, 1);
});

for (const addresses of [
  ['127.0.0.2', '127.0.0.3', '127.0.0.1'],
  ['::1', '127.0.0.2', '127.0.0.1'],
])
  test(`only the last of ${addresses} accepts`, async (t) => {
    const last = addresses.at(-1);
    const { port, came } = await servers(t, net, [last]);
    const socket = race(t, port, { lookup: resolver(...addresses) });
    assert.equal(await echo(socket, 'x'), 'x');
    assert.equal(socket.remoteAddress, last);
    assert.ok(came[last].length >= 1);
  });

test('addresses that do not answer: the next one is tried beside them', {
  skip: process.platform === 'linux' ? false : 'what a full queue does to a SYN is known of Linux only',
}, async (t) => {
  const { port } = await fullServer(t, 'net', 0);
  const server = net.createServer((socket) => socket.on('error', () => {}).pipe(socket));
  server.listen(port, '127.0.0.3');
  await once(server, 'listening');
  t.after(() => server.close());
  // Both connections begin at one that hangs, of which the second tires first.
  const lookup = resolver('127.0.0.1', '127.0.0.1', '127.0.0.3');
  const socket = race(t, port, { lookup, autoSelectFamilyAttemptTimeout: 50 });
  assert.equal(await echo(socket, 'x'), 'x');
  assert.equal(socket.remoteAddress, '127.0.0.3');
  assert.equal(repnet.stats().copiesIssued, 2);
});

const FIRST_CONTACT = { replicate: 'syn', peer: 'auto' };
const MODES = {
  'RepSYN, first contact': FIRST_CONTACT,
  'RepFlow, first contact': { replicate: 'flow', peer: 'auto' },
  'RepFlow, server known to be plain': { replicate: 'flow', peer: 'plain' },
};

for (const [name, mode] of Object.entries(MODES)) {
  test(`${name}: an attempt that hangs is not ended by the next one`, {
    skip: process.platform === 'linux' ? false : 'what a full queue does to a SYN is known of Linux only',
  }, async (t) => {
    const { port } = await fullServer(t, 'net', 0);
    const late = race(t, port, {
      ...mode,
      lookup: resolver('127.0.0.1', '127.0.0.3'),
      autoSelectFamilyAttemptTimeout: 10,
    });
    let failure;
    late.on('error', (error) => {
      failure = error;
    });
    // The other address refuses, and a second one is asked in its turn after that.
    const server = net.createServer((socket) => socket.on('error', () => {}).pipe(socket));
    server.listen(port, '127.0.0.4');
    await once(server, 'listening');
    t.after(() => server.close());
    const lookup = resolver('127.0.0.1', '127.0.0.3', '127.0.0.4');
    const socket = race(t, port, { ...mode, lookup, autoSelectFamilyAttemptTimeout: 10 });
    assert.equal(await echo(socket, 'x'), 'x');
    assert.equal(socket.remoteAddress, '127.0.0.4');
    assert.equal(socket.remotePort, port);
    assert.deepEqual([failure, late.connecting], [undefined, true]);
  });

  test(`${name}: every address refuses: one error, as net tells it`, async (t) => {
    const { port } = await servers(t, net, ['127.0.0.1']);
    const seen = [];
    for (const api of [net, repnet]) {
      const socket = api.connect({ host: NAME, port, lookup: resolver('127.0.0.2', '::1'), ...mode });
      const [error] = await once(socket, 'error');
      const causes = error.errors.map(({ code, message }) => [code, message]);
      seen.push([error.name, error.code, error.message, causes, socket.autoSelectFamilyAttemptedAddresses]);
    }
    assert.deepEqual(seen[1], seen[0]);
  });

  test(`${name}: an AbortSignal ends it, and 'connect' is never told`, async (t) => {
    const { port } = await servers(t, net, ['127.0.0.2', '127.0.0.3']);
    const abort = new AbortController();
    const lookup = resolver('127.0.0.2', '127.0.0.3');
    const socket = race(t, port, { ...mode, lookup, signal: abort.signal });
    socket.once('connect', () => assert.fail('connected'));
    socket.once('lookup', () => abort.abort());
    const [error] = await once(socket, 'error');
    assert.equal(error.name, 'AbortError');
    await once(socket, 'close');
  });

  for (const [option, value] of [
    ['autoSelectFamily', false],
    ['family', 4],
    ['localAddress', '127.0.0.9'],
  ])
    test(`${name}: ${option} is ${value}: one address, as with net`, async (t) => {
      const { port, came } = await servers(t, net, ['127.0.0.2', '127.0.0.3']);
      for (const api of [net, repnet]) {
        const lookup = resolver('127.0.0.2', '127.0.0.3');
        const socket = api.connect({ host: NAME, port, ...mode, lookup, [option]: value });
        t.after(() => socket.destroy());
        assert.equal(await echo(socket, 'x'), 'x');
        assert.equal(socket.remoteAddress, '127.0.0.2');
      }
      assert.deepEqual(came['127.0.0.3'], []);
    });

  test(`${name}: a blocked address is left out`, async (t) => {
    const { port, came } = await servers(t, net, ['127.0.0.2', '127.0.0.3']);
    const blockList = new net.BlockList();
    blockList.addAddress('127.0.0.2');
    if (new net.Socket({ blockList }).blockList === undefined) return t.skip(notThisNode('blockList'));
    const lookup = resolver('127.0.0.2', '127.0.0.3');
    const socket = race(t, port, { ...mode, lookup, blockList });
    assert.equal(await echo(socket, 'x'), 'x');
    assert.deepEqual([socket.remoteAddress, came['127.0.0.2']], ['127.0.0.3', []]);
  });
}

test('first contact by RepSYN: a connection to each of two addresses, at once, and one of them is used', async (t) => {
  const { port, came } = await servers(t, net, ['127.0.0.2', '127.0.0.3']);
  const socket = race(t, port, { ...FIRST_CONTACT, lookup: resolver('127.0.0.2', '127.0.0.3') });
  assert.equal(await echo(socket, 'x'), 'x');
  await until(() => came['127.0.0.2'].length >= 1 && came['127.0.0.3'].length >= 1, 'both were asked');
  const { flowsPlain, copiesIssued } = repnet.stats();
  assert.deepEqual([flowsPlain, copiesIssued], [1, 1]);
  assert.equal(repnet.info(socket).mode, false);
});

test('a second connection that waits starts when the first fails, whatever its delay', async (t) => {
  // No connection can be made to the broadcast address.
  const options = { host: '255.255.255.255', peer: 'repnet', copyDelay: 60_000 };
  const socket = race(t, 9, options);
  await once(socket, 'error');
  assert.equal(repnet.stats().copiesIssued, 1);
});

test('every address refuses: one error, as net tells it', async (t) => {
  const { port } = await servers(t, net, ['127.0.0.1']);
  const seen = [];
  for (const api of [net, repnet]) {
    const options = {
      host: NAME,
      port,
      lookup: resolver('127.0.0.2', '::1'),
      replicate: 'syn',
      peer: 'plain',
    };
    const [error] = await once(api.connect(options), 'error');
    seen.push([error.name, error.code, error.errors?.map(({ code, address }) => [code, address])]);
  }
  assert.deepEqual(seen[1], seen[0]);
});

test('a name that is not known: the error of its resolver, as net tells it', async () => {
  const lookup = (_host, _options, done) =>
    setImmediate(done, Object.assign(new Error('no such name'), { code: 'ENOTFOUND' }));
  for (const api of [net, repnet]) {
    const [error] = await once(
      api.connect({ host: NAME, port: 9, lookup, replicate: 'syn', peer: 'plain' }),
      'error',
    );
    assert.equal(error.code, 'ENOTFOUND');
  }
});

test('an AbortSignal ends the race', async (t) => {
  const { port } = await servers(t, net, ['127.0.0.2', '127.0.0.3']);
  const abort = new AbortController();
  const socket = race(t, port, { lookup: resolver('127.0.0.2', '127.0.0.3'), signal: abort.signal });
  socket.once('lookup', () => abort.abort());
  const [error] = await once(socket, 'error');
  assert.equal(error.name, 'AbortError');
  assert.equal(socket.destroyed, true);
});

test('localAddress: both connections come from there; net asks for one address then', async (t) => {
  const { port, came } = await servers(t, net, ['127.0.0.2', '127.0.0.3']);
  const lookup = resolver('127.0.0.2', '127.0.0.3');
  const socket = race(t, port, { lookup, localAddress: '127.0.0.9', loser: 'fin' });
  assert.equal(await echo(socket, 'x'), 'x');
  assert.equal(socket.localAddress, '127.0.0.9');
  await until(() => came['127.0.0.2'].length === 2, 'both were asked');
  assert.deepEqual(came, { '127.0.0.2': ['127.0.0.9', '127.0.0.9'], '127.0.0.3': [] });
});

test('timeout: as of any socket', async (t) => {
  const { port } = await servers(t, net, ['127.0.0.2', '127.0.0.3']);
  const socket = race(t, port, { lookup: resolver('127.0.0.2', '127.0.0.3'), timeout: 20 });
  await once(socket, 'timeout');
  assert.equal(socket.timeout, 20);
  assert.equal(socket.destroyed, false);
});

test('families take turns, from that of the first address on', async () => {
  const asked = (addresses) =>
    new Promise((resolve) => {
      const resolution = new Resolution(resolver(...addresses));
      resolution.options.lookup(NAME, { all: true }, () => resolve(resolution.addresses));
    });
  assert.deepEqual(await asked(['::1', '::2', '::3', '127.0.0.1', '127.0.0.2']), [
    '::1',
    '127.0.0.1',
    '::2',
    '127.0.0.2',
    '::3',
  ]);
  assert.deepEqual(await asked(['127.0.0.1', '::1']), ['127.0.0.1', '::1']);
  assert.deepEqual(await asked(['127.0.0.1']), ['127.0.0.1']);
});
