/**
 * The first port of a server that pairs by token: what begins as a hello is never an application's, however late it comes,
 * and whatever limit or switch is set; what begins otherwise is a plain client's.
 */
import assert from 'node:assert/strict';
import net from 'node:net';
import { afterEach, before, beforeEach, test } from 'node:test';
import repnet from '../dist/index.js';
import { ANSWER_BYTES, decodeAnswer, HelloFlag, Kind, Refusal } from '../dist/wire.js';
import { startRelay } from './lib/relay.mjs';
import { data, defaults, echo, hello, ownPort, raw, settle, until } from './lib/support.mjs';

before(() => {
  Object.assign(defaults, { waitTimeout: 1_000, pairTimeout: 800 });
});
beforeEach(() => repnet.resetStats());
afterEach(() => repnet.enable());

const FLAGS = HelloFlag.early | HelloFlag.token;
let tokens = 0;
const newToken = () => Buffer.alloc(16, `token ${tokens++}`);

/** A hello on the first port, and the first record. */
const request = (connection, port, token, text = 'request') =>
  Buffer.concat([
    hello(connection, port, { kind: Kind.primary, flags: FLAGS | HelloFlag.origin, token }),
    data(0, text),
  ]);

const refusal = async (connection) => {
  await until(() => connection.bytes.length >= ANSWER_BYTES || connection.closed, 'an answer');
  return decodeAnswer(connection.bytes)?.refusal;
};

/** A server that pairs by token and keeps what each of its connections brought. */
async function tokenServer(t, { greeting, onServer = () => {}, ...options } = {}) {
  const seen = [];
  const server = repnet.createServer({ pairing: 'token', ...options }, (socket) => {
    const each = { socket, text: '', ended: false, closed: false };
    seen.push(each);
    socket.on('error', () => {}).on('end', () => (each.ended = true));
    socket.on('close', () => (each.closed = true));
    socket.on('data', (chunk) => {
      each.text += chunk.toString('latin1');
      socket.write(chunk);
    });
    if (greeting !== undefined) socket.write(greeting);
  });
  onServer(server);
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    for (const { socket } of seen) socket.destroy();
    server.close();
  });
  return { server, seen, port: server.address().port };
}

/** The server has been there for long enough to let a flow of so patient a client begin with its second connection. */
async function grown(t, port, patience) {
  for (;;) {
    const second = await raw(t, port + 1);
    second.socket.write(hello(second, port, { flags: FLAGS, token: newToken(), patience }));
    const refused = await refusal(second);
    second.socket.destroy();
    if (refused === Refusal.none) return repnet.resetStats();
  }
}

let lastHost = 10;
/** An address from which no hello has come yet. */
const newHost = () => `127.0.1.${lastHost++}`;

for (const [what, fault] of [
  ['comes late, by more than a retransmission takes', { kind: 'pause', at: 0, ms: 450 }],
  ['is late by half', { kind: 'pause', at: 34, ms: 450 }],
  ['breaks off in the middle', { kind: 'stall', at: 34 }],
  ['breaks off with its last byte', { kind: 'stall', at: 75 }],
])
  test(`a hello that ${what}: one connection for the flow, and no byte of the hello`, async (t) => {
    const relay = await startRelay({
      faultsFor: (_, copy) => (copy === 0 ? [{ copy: 0, direction: 'up', ...fault }] : []),
    });
    const { seen, port } = await tokenServer(t, { addresses: [`${relay.host}:${relay.port}`] });
    relay.targetPort = port;
    t.after(() => relay.close());
    const to = { host: relay.host, port: relay.port, replicate: 'flow', pairing: 'token', peer: 'repnet' };
    if (fault.kind === 'stall') {
      // The client would give the first connection up itself, after twice this.
      to.pairTimeout = 1_500;
      await grown(t, port, to.pairTimeout);
    }
    const socket = repnet.connect(to);
    t.after(() => socket.destroy());
    assert.equal(await echo(socket, 'request'), 'request');
    if (fault.kind === 'pause') await until(() => repnet.stats().flowsPaired === 1, 'the late one joins');
    else await until(() => repnet.stats().refused === 1, 'the broken one is dropped');
    assert.deepEqual(
      seen.map(({ text }) => text).filter((text) => text !== ''),
      ['request'],
    );
  });

test('a client that was taken for a plain one says hello: the connection that the application has is its flow', async (t) => {
  const { seen, port } = await tokenServer(t);
  const host = newHost();
  const first = await raw(t, port, { localAddress: host });
  await until(() => seen.length === 1, 'the silent connection is handed on');
  const token = newToken();
  const bytes = request(first, port, token);
  first.socket.write(bytes.subarray(0, 50));
  await settle();
  assert.equal(seen[0].text, '');
  first.socket.write(bytes.subarray(50));
  assert.equal(await refusal(first), Refusal.none);
  await until(() => seen[0].text === 'request');
  const second = await raw(t, port + 1, { localAddress: host });
  second.socket.write(
    Buffer.concat([hello(second, port, { flags: FLAGS, token }), data(0, 'request and more')]),
  );
  assert.equal(await refusal(second), Refusal.none);
  await until(() => seen[0].text === 'request and more');
  assert.equal(seen.length, 1);
});

test('… but not if the application has spoken to it, or if the flow has begun elsewhere: then it ends without a byte', async (t) => {
  const { seen, port } = await tokenServer(t, { greeting: '220 ready\r\n' });
  const host = newHost();
  const greeted = await raw(t, port, { localAddress: host });
  await until(() => greeted.bytes.toString() === '220 ready\r\n');
  greeted.socket.write(request(greeted, port, newToken()));
  await until(() => seen[0].closed && greeted.closed);
  assert.equal(seen[0].text, '');
  assert.equal(seen[0].ended, false, 'not an end, which could be taken for a request');

  const other = await tokenServer(t);
  const elsewhere = newHost();
  const late = await raw(t, other.port, { localAddress: elsewhere });
  await until(() => other.seen.length === 1);
  const token = newToken();
  const replica = await raw(t, other.port + 1, { localAddress: elsewhere });
  const flags = FLAGS | HelloFlag.origin;
  replica.socket.write(Buffer.concat([hello(replica, other.port, { flags, token }), data(0, 'request')]));
  await until(() => other.seen.length === 2 && other.seen[1].text === 'request');
  late.socket.write(request(late, other.port, token));
  await until(() => other.seen[0].closed);
  assert.equal(await refusal(late), Refusal.none);
  await settle();
  assert.deepEqual(
    other.seen.map(({ text, ended }) => [text, ended]),
    [
      ['', false],
      ['request', false],
    ],
  );
});

test('half a hello from a client that was taken for a plain one, and then nothing, or the end: nothing for the application', async (t) => {
  const { seen, port } = await tokenServer(t);
  for (const end of [false, true]) {
    const count = seen.length;
    const silent = await raw(t, port, { localAddress: newHost() });
    await until(() => seen.length === count + 1);
    silent.socket.write(request(silent, port, newToken()).subarray(0, 34));
    if (end) silent.socket.end();
    await until(() => seen[count].closed && silent.closed);
    assert.equal(seen[count].text, '');
    assert.equal(seen[count].ended, false);
  }
});

test('plain clients: of protocols in which they speak first, or the server, also from a host that says hello', async (t) => {
  const { seen, port } = await tokenServer(t, { greeting: '220 ready\r\n' });
  for (const localAddress of [newHost(), '127.0.0.1']) {
    if (localAddress === '127.0.0.1') {
      const known = await raw(t, port + 1);
      known.socket.write(hello(known, port, { kind: Kind.probe }));
      await refusal(known);
    }
    const talks = await raw(t, port, { localAddress });
    // Bytes that are those of a hello up to the fourth.
    talks.socket.write(Buffer.from('9e526570', 'hex'));
    talks.socket.write('lacement');
    const text = Buffer.from('9e526570', 'hex').toString('latin1').concat('lacement');
    await until(() => seen.at(-1)?.text === text);
    const listens = await raw(t, port, { localAddress });
    await until(() => listens.bytes.toString() === '220 ready\r\n', 'a greeting');
    listens.socket.write('HELO');
    await until(() => seen.at(-1).text === 'HELO');
  }
});

test('a flood of silent connections does not make a hello the application’s', async (t) => {
  const { seen, port } = await tokenServer(t);
  const known = await raw(t, port + 1);
  known.socket.write(hello(known, port, { kind: Kind.probe }));
  await refusal(known);
  const late = await raw(t, port);
  const silent = [];
  t.after(() => {
    for (const each of silent) each.destroy();
  });
  const host = newHost();
  for (let n = 0; n < 1_100; n++)
    silent.push(net.connect({ host: '127.0.0.1', port, localAddress: host }).on('error', () => {}));
  await until(() => seen.length >= 76, 'the oldest are handed on');
  late.socket.write(request(late, port, newToken(), 'late, and whole'));
  await until(() => late.bytes.subarray(ANSWER_BYTES).includes('late, and whole'), 'the reply');
  assert.ok(seen.every(({ text }) => text === '' || text === 'late, and whole'));
});

for (const [what, options, onServer, switched] of [
  ['maxConnections is set', {}, (server) => (server.maxConnections = 100)],
  ['a BlockList is set', { blockList: new net.BlockList() }],
  ['replication is switched off', {}, () => {}, () => repnet.disable()],
  ['replication was switched off before it listened', {}, () => repnet.disable()],
])
  test(`${what}: the application gets the stream, not the protocol`, async (t) => {
    const { seen, port } = await tokenServer(t, { ...options, onServer });
    switched?.();
    const token = newToken();
    const first = await raw(t, port);
    first.socket.write(request(first, port, token));
    assert.equal(await refusal(first), Refusal.none);
    await until(() => seen[0]?.text === 'request');
    const second = await raw(t, port + 1);
    second.socket.write(hello(second, port, { flags: FLAGS, token }));
    assert.equal(await refusal(second), defaults.enabled ? Refusal.none : Refusal.disabled);
    const plain = await raw(t, port);
    plain.socket.write('plain');
    await until(() => seen[1]?.text === 'plain');
    await until(() => plain.bytes.toString() === 'plain', 'the echo');
  });

test('maxConnections counts flows and plain clients alike, and a full server answers a hello and nothing more', async (t) => {
  const { server, seen, port } = await tokenServer(t);
  server.maxConnections = 1;
  const drops = [];
  server.on('drop', ({ remotePort }) => drops.push(remotePort));
  const first = await raw(t, port);
  const token = newToken();
  first.socket.write(request(first, port, token));
  await until(() => seen[0]?.text === 'request');
  const flow = await raw(t, port);
  const ports = [flow.socket.localPort];
  flow.socket.write(request(flow, port, newToken()));
  assert.equal(await refusal(flow), Refusal.limit);
  const plain = await raw(t, port);
  ports.push(plain.socket.localPort);
  plain.socket.write('plain');
  await until(() => plain.closed);
  assert.equal(plain.bytes.length, 0);
  assert.deepEqual(drops, ports);
  // The second connection of the flow there is takes no room.
  const second = await raw(t, port + 1);
  second.socket.write(hello(second, port, { flags: FLAGS, token }));
  assert.equal(await refusal(second), Refusal.none);
  assert.equal(seen.length, 1);
});

test('switched off and on again: a connection that began meanwhile is not begun once more by its second', async (t) => {
  const sockets = [];
  const server = repnet.createServer((socket) => sockets.push(socket.on('error', () => {})));
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const { port } = server.address();
  // Until flows may begin with their second connection.
  await until(() => {
    const socket = net.connect({ host: '127.0.0.1', port: port + 1 }, () => {
      socket.write(hello({ socket }, port));
    });
    t.after(() => socket.destroy());
    socket.on('error', () => {});
    return sockets.length > 0;
  });
  const count = sockets.length;
  repnet.disable();
  const first = await raw(t, port, { localPort: ownPort() });
  await until(() => sockets.length === count + 1);
  repnet.enable();
  const second = await raw(t, port + 1, { localPort: first.socket.localPort });
  second.socket.write(Buffer.concat([hello(second, port), data(0, 'request')]));
  assert.equal(await refusal(second), Refusal.unknown);
  assert.equal(sockets.length, count + 1);
});

test('pauseOnConnect: what came with the hello is there when the application reads', async (t) => {
  const { seen, port } = await tokenServer(t, { pauseOnConnect: true });
  const first = await raw(t, port);
  first.socket.write(request(first, port, newToken()));
  await until(() => seen.length === 1);
  await settle();
  assert.equal(seen[0].text, '');
  seen[0].socket.resume();
  await until(() => seen[0].text === 'request');
});
