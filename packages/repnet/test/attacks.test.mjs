/** The threat model (docs/threat-model.md), one test per attack: raw connections do what a hostile client would. */
import assert from 'node:assert/strict';
import net from 'node:net';
import { before, test } from 'node:test';
import { forgetPeers } from '../dist/client/peers.js';
import repnet from '../dist/index.js';
import {
  ANSWER_BYTES,
  controlRecord,
  dataHeader,
  decodeAnswer,
  HelloFlag,
  Kind,
  Record,
  Refusal,
} from '../dist/wire.js';
import { notThisNode } from './lib/skips.mjs';
import { data, defaults, echoServer, hello, ownPort, raw, settle, ticks, until } from './lib/support.mjs';

before(() => {
  Object.assign(defaults, { waitTimeout: 300, pairTimeout: 300 });
});

const refusal = async (connection) => {
  await until(() => connection.bytes.length >= ANSWER_BYTES || connection.closed, 'an answer');
  return decodeAnswer(connection.bytes)?.refusal;
};

test('joining a stranger: a replica that claims another source than its own is refused', async (t) => {
  const { sockets, port } = await echoServer(t);
  const victim = await raw(t, port, { localPort: ownPort() });
  await until(() => sockets.length === 1);
  const attacker = await raw(t, port + 1, { localAddress: '127.0.0.3' });
  attacker.socket.write(
    Buffer.concat([
      hello(attacker, port, { sourceAddress: victim.localAddress, sourcePort: victim.localPort }),
      data(0, 'injected'),
    ]),
  );
  assert.equal(await refusal(attacker), Refusal.mismatch);
  await settle();
  assert.equal(victim.bytes.length, 0);
  assert.equal(sockets.length, 1);
});

test('joining a stranger by the same port number from another address pairs nothing', async (t) => {
  const { sockets, port } = await echoServer(t);
  const localPort = ownPort();
  const victim = await raw(t, port, { localPort });
  await until(() => sockets.length === 1);
  const attacker = await raw(t, port + 1, { localAddress: '127.0.0.3', localPort });
  attacker.socket.write(Buffer.concat([hello(attacker, port), data(0, 'injected')]));
  await settle();
  assert.equal(victim.bytes.length, 0, 'the victim got the reply to what the attacker sent');
  assert.equal(sockets[0].bytesRead, 0);
});

test('silent connections to the second port are bounded, and do not keep a flow out', async (t) => {
  const { port } = await echoServer(t);
  const silent = [];
  for (let i = 0; i < 1_100; i++)
    silent.push(net.connect({ host: '127.0.0.1', port: port + 1 }).on('error', () => {}));
  t.after(() => {
    for (const s of silent) s.destroy();
  });
  await until(() => silent.filter((s) => s.destroyed).length >= 70, 'the oldest are dropped');
  repnet.resetStats();
  const socket = repnet.connect({ host: '127.0.0.1', port, peer: 'repnet', replicate: 'flow' });
  await new Promise((resolve) => socket.once('data', resolve).write('still served'));
  await until(() => repnet.stats().flowsPaired === 1);
  socket.destroy();
});

/** Says a hello byte by byte, and takes longer for it than a server waits for a flow's other connection. */
async function slowly(t, port, kind) {
  const slow = await raw(t, port + 1);
  const bytes = hello(slow, port, { kind });
  for (let at = 0; at < bytes.length; at++) {
    slow.socket.write(bytes.subarray(at, at + 1));
    await ticks(1, defaults.waitTimeout / 40);
  }
  return slow;
}

test('a second connection whose hello takes longer than the wait for it begins no flow, and joins none', async (t) => {
  const { port, sockets } = await echoServer(t);
  const slow = await slowly(t, port, Kind.replica);
  assert.equal(await refusal(slow), Refusal.late);
  assert.equal(sockets.length, 0);
});

test('the winner of a race is a flow, however long its hello takes', async (t) => {
  const { port } = await echoServer(t);
  const winner = await slowly(t, port, Kind.raw);
  winner.socket.write('PING');
  await until(() => winner.bytes.length > 0);
  assert.equal(winner.bytes.toString(), 'PING');
});

test('the waiting list is bounded: more flows than it holds go on plain', async (t) => {
  const before = defaults.waitEntries;
  defaults.waitEntries = 8;
  t.after(() => {
    defaults.waitEntries = before;
  });
  const { sockets, port } = await echoServer(t);
  const flows = [];
  for (let i = 0; i < 40; i++) flows.push(await raw(t, port, { localPort: ownPort() }));
  await until(() => sockets.length === 40);
  for (const flow of flows) flow.socket.write('x');
  await until(() => flows.every((flow) => flow.bytes.toString() === 'x'), 'every flow is answered');
  // Those that are on the list are the ones whose second connection can still join; nobody else's begins a flow.
  const answers = await Promise.all(
    flows.map(async ({ socket }) => {
      const replica = await raw(t, port + 1, { localPort: socket.localPort });
      replica.socket.write(hello(replica, port));
      return refusal(replica);
    }),
  );
  const joined = answers.filter((answer) => answer === Refusal.none).length;
  assert.ok(joined >= 1 && joined <= 8, `${joined} flows were waiting`);
  assert.equal(answers.filter((answer) => answer === undefined).length, 0);
  assert.equal(sockets.length, 40);
});

test('the archive is bounded in bytes over all flows', async (t) => {
  const before = defaults.archiveBytes;
  defaults.archiveBytes = 200_000;
  t.after(() => {
    defaults.archiveBytes = before;
  });
  const { archiveSize } = await import('../dist/memory/archive.js');
  const { sockets, port } = await echoServer(t);
  const flows = [];
  for (let i = 0; i < 10; i++) flows.push(await raw(t, port));
  await until(() => sockets.length === 10);
  for (const flow of flows) flow.socket.write(Buffer.alloc(50_000));
  await until(() => flows.every((flow) => flow.bytes.length === 50_000));
  assert.ok(archiveSize() <= 200_000, `${archiveSize()} bytes archived`);
  await until(() => archiveSize() === 0, 'the archive is dropped when the wait is over');
});

for (const threshold of [100_000, 0xffffffff])
  test(`records far ahead of the stream are not stored without limit, announced threshold ${threshold}`, async (t) => {
    const { sockets, port } = await echoServer(t);
    const localPort = ownPort();
    const primary = await raw(t, port, { localPort });
    await until(() => sockets.length === 1);
    const replica = await raw(t, port + 1, { localPort });
    replica.socket.write(hello(replica, port, { threshold }));
    const ahead = Buffer.alloc(1024 * 1024);
    for (let n = 0; n < 64; n++)
      replica.socket.write(Buffer.concat([dataHeader(10 + n * ahead.length, ahead.length), ahead]));
    await settle();
    assert.ok(replica.socket.writableLength > 32 * 1024 * 1024, 'the server has stopped reading them');
    primary.socket.write('goes on');
    await until(() => primary.bytes.toString() === 'goes on');
  });

test('malformed records cost the replica and nothing else', async (t) => {
  const { sockets, port } = await echoServer(t);
  for (const garbage of [
    Buffer.from('GET / HTTP/1.1\r\n\r\n'),
    Buffer.alloc(64, 0x7f),
    dataHeader(0, 0),
    Buffer.concat([controlRecord(Record.end, 5), controlRecord(Record.end, 6)]),
    Buffer.concat([data(0, 'abc'), controlRecord(Record.end, 1)]),
  ]) {
    const localPort = ownPort();
    const count = sockets.length;
    const primary = await raw(t, port, { localPort });
    await until(() => sockets.length === count + 1);
    const replica = await raw(t, port + 1, { localPort });
    replica.socket.write(Buffer.concat([hello(replica, port), garbage]));
    await until(() => replica.closed, 'the replica is dropped');
    assert.equal(primary.closed, false);
  }
});

test('maxConnections holds on the second port', async (t) => {
  const { server, sockets, port } = await echoServer(t);
  server.maxConnections = 1;
  const dropped = [];
  server.on('drop', (info) => dropped.push(info.remotePort));
  await raw(t, port);
  await until(() => sockets.length === 1);
  // By a copy without a first connection, and by a RepSYN winner.
  for (const kind of [Kind.replica, Kind.raw]) {
    const before = dropped.length;
    // A server that has just begun holds copies back, and refuses them for another reason.
    do {
      const attacker = await raw(t, port + 1);
      attacker.socket.write(hello(attacker, port, { kind }));
      await until(() => attacker.closed || attacker.ended, 'refused');
    } while (dropped.length === before);
  }
  assert.equal(sockets.length, 1);
  assert.equal(dropped.length, 2);
});

test('a BlockList holds on the second port', async (t) => {
  const blockList = new net.BlockList();
  blockList.addAddress('127.0.0.3');
  const { server, sockets, port } = await echoServer(t, { blockList });
  if (server.blockList === undefined) {
    t.skip(notThisNode('no server.blockList'));
    return;
  }
  for (const kind of Object.values(Kind)) {
    const attacker = await raw(t, port + 1, { localAddress: '127.0.0.3' });
    attacker.socket.write(hello(attacker, port, { kind }));
    await until(() => attacker.closed || attacker.ended, 'refused');
    assert.equal(attacker.bytes.length, 0, `kind ${kind} got an answer`);
  }
  assert.equal(sockets.length, 0);
});

test('the second port gives nothing that the first does not: a hello alone starts at most one flow, and probes none', async (t) => {
  const { sockets, port } = await echoServer(t);
  const prober = await raw(t, port + 1);
  prober.socket.write(hello(prober, port, { kind: Kind.probe }));
  assert.equal(await refusal(prober), Refusal.none);
  await until(() => prober.closed || prober.ended);
  assert.equal(sockets.length, 0);
});

test('the kill switch works at run time: copies are refused and new flows are plain', async (t) => {
  const { sockets, port } = await echoServer(t);
  repnet.disable();
  t.after(() => repnet.enable());
  for (const kind of [Kind.replica, Kind.probe]) {
    const refused = await raw(t, port + 1);
    refused.socket.write(hello(refused, port, { kind }));
    assert.equal(await refusal(refused), Refusal.disabled);
    await until(() => refused.closed || refused.ended);
    assert.equal(refused.bytes.length, ANSWER_BYTES);
  }
  assert.equal(sockets.length, 0);
  // The winner of a RepSYN race has sent a request already, on what is a plain connection.
  const winner = await raw(t, port + 1);
  winner.socket.write(Buffer.concat([hello(winner, port, { kind: Kind.raw }), Buffer.from('PING')]));
  await until(() => winner.bytes.length > 0);
  assert.equal(winner.bytes.toString(), 'PING');
  repnet.resetStats();
  const socket = repnet.connect({ host: '127.0.0.1', port, replicate: 'flow' });
  await new Promise((resolve) => socket.once('data', resolve).write('plain'));
  assert.equal(repnet.stats().flowsFlow, 0);
  socket.destroy();
});

/** A service on p and another on p + 1 that is of this library, but no part of the first. */
async function neighbours(t, first, second) {
  for (;;) {
    const one = first();
    await new Promise((resolve) => one.listen(0, '127.0.0.1', resolve));
    const { port } = one.address();
    const { server: other, at } = second(port);
    const free = await new Promise((resolve) => {
      other.once('error', () => resolve(false));
      other.listen(at, '127.0.0.1', () => resolve(true));
    });
    if (!free) {
      one.close();
      continue;
    }
    t.after(() => {
      one.close();
      other.close();
    });
    return port;
  }
}

for (const mode of ['syn', 'flow'])
  test(`another service of this library has the port beside it for its second one: ${mode} gives it nothing`, async (t) => {
    const got = { first: [], second: [] };
    let connections = 0;
    const open = [];
    const take = (name) => (socket) => {
      open.push(socket);
      if (name === 'first') connections++;
      socket
        .on('error', () => {})
        .on('data', (chunk) => {
          got[name].push(chunk.toString('latin1'));
          socket.write('answer');
        });
    };
    t.after(() => {
      for (const socket of open) socket.destroy();
    });
    const port = await neighbours(
      t,
      () => net.createServer(take('first')),
      (first) => ({
        server: repnet.createServer({ replicaPort: first + 1 }, take('second')),
        at: 0,
      }),
    );
    const wanted = [];
    for (let n = 0; n < 4; n++) {
      wanted.push(`for the first ${n}`);
      const socket = repnet.connect({ host: '127.0.0.1', port, replicate: mode });
      const answer = await new Promise((resolve) => socket.once('data', resolve).write(wanted[n]));
      assert.equal(answer.toString(), 'answer');
      // What was asked beside it is answered, or given up.
      await settle();
      socket.destroy();
    }
    assert.deepEqual(got, { first: wanted, second: [] });
    assert.equal(connections, 4, 'a service that may replicate gets one connection for a flow');
  });

test('switched off and on again: a connection that began meanwhile is not begun once more by its second', async (t) => {
  const { sockets, port } = await echoServer(t);
  await until(async () => {
    const second = await raw(t, port + 1);
    second.socket.write(hello(second, port));
    return (await refusal(second)) === Refusal.none;
  }, 'flows may begin with their second connection');
  const count = sockets.length;
  repnet.disable();
  t.after(() => repnet.enable());
  const first = await raw(t, port, { localPort: ownPort() });
  await until(() => sockets.length === count + 1);
  repnet.enable();
  const second = await raw(t, port + 1, { localPort: first.socket.localPort });
  second.socket.write(Buffer.concat([hello(second, port), data(0, 'request')]));
  assert.equal(await refusal(second), Refusal.unknown);
  assert.equal(sockets.length, count + 1);
});

test('a client of an earlier version that pairs by token is refused, and nothing that it says is an application’s', async (t) => {
  const { sockets, port } = await echoServer(t);
  const pairedByToken = HelloFlag.token | HelloFlag.early;
  for (const [fields, expected] of [
    [{ flags: pairedByToken }, Refusal.mismatch],
    [{ flags: pairedByToken, kind: 4 }, Refusal.version],
  ]) {
    const client = await raw(t, port + 1);
    client.socket.write(Buffer.concat([hello(client, port, fields), data(0, 'request')]));
    assert.equal(await refusal(client), expected);
  }
  assert.equal(sockets.length, 0);
});

test('a service that took the port over since it was discovered: the winner of a race that is for another is reset', async (t) => {
  const { sockets, port } = await echoServer(t);
  for (const target of [port + 7, 0]) {
    const winner = await raw(t, port + 1);
    winner.socket.write(
      Buffer.concat([hello(winner, target, { kind: Kind.raw }), Buffer.from('for another')]),
    );
    await until(() => winner.closed);
    assert.equal(winner.bytes.length, 0);
    assert.equal(winner.ended, false, 'not an end, which could be taken for an answer');
  }
  assert.equal(sockets.length, 0);
});

test('a server behind a translated port is known by the ports of `addresses`', async (t) => {
  for (const [addresses, kinds] of [
    [undefined, ['syn refused', 'other']],
    [[':7'], ['syn served', 'same']],
    [['192.0.2.1:7'], ['syn served', 'same']],
  ]) {
    const { sockets, port } = await echoServer(t, { addresses });
    const asks = await raw(t, port + 1);
    asks.socket.write(hello(asks, 7, { kind: Kind.probe }));
    assert.equal(await refusal(asks), Refusal.none);
    const winner = await raw(t, port + 1);
    winner.socket.write(Buffer.concat([hello(winner, 7, { kind: Kind.raw }), Buffer.from('x')]));
    await until(() => winner.closed || winner.bytes.length > 0);
    assert.deepEqual(
      [
        sockets.length === 1 ? 'syn served' : 'syn refused',
        decodeAnswer(asks.bytes).port === 7 ? 'same' : 'other',
      ],
      kinds,
    );
  }
});

test('a foreign service on the second port gets a hello and not one byte of the application', async (t) => {
  const seen = [];
  let first;
  let second;
  for (;;) {
    first = net.createServer((s) => s.on('error', () => {}).pipe(s));
    second = net.createServer((s) => s.on('error', () => {}).on('data', (d) => seen.push(d)));
    await new Promise((resolve) => first.listen(0, '127.0.0.1', resolve));
    const free = await new Promise((resolve) => {
      second.once('error', () => resolve(false));
      second.listen(first.address().port + 1, '127.0.0.1', () => resolve(true));
    });
    if (free) break;
    first.close();
  }
  t.after(() => {
    first.close();
    second.close();
  });
  // A port that came again may have been another server's.
  forgetPeers();
  for (let i = 0; i < 5; i++) {
    const socket = repnet.connect({ host: '127.0.0.1', port: first.address().port, replicate: 'flow' });
    const reply = await new Promise((resolve) => socket.once('data', resolve).write('SECRET'));
    assert.equal(reply.toString(), 'SECRET');
    await settle();
    socket.destroy();
  }
  await settle();
  assert.equal(Buffer.concat(seen).includes('SECRET'), false);
  for (const bytes of seen) assert.equal(bytes.length, 76);
  assert.ok(seen.length >= 1);
});
