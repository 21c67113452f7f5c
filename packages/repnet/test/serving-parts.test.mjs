/** The parts of a server that replicates, each by itself: which flows may begin with their second connection, pairing, plain connections. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import { beforeEach, test } from 'node:test';
import { Leg, nobody } from '../dist/flow/leg.js';
import { REPLICA } from '../dist/flow/machine.js';
import repnet from '../dist/index.js';
import { takeHandle } from '../dist/net-internals.js';
import { replicationOptions } from '../dist/options.js';
import { Origins } from '../dist/server/origins.js';
import { Pairing } from '../dist/server/pairing.js';
import { PlainConnections } from '../dist/server/plain-connections.js';
import { kOptions, kShared } from '../dist/server/server-internals.js';
import { attachment } from '../dist/socket-internals.js';
import { HelloFlag, Kind } from '../dist/wire.js';
import { memoryLeg } from './lib/memory-leg.mjs';
import { defaults, grown, until } from './lib/support.mjs';

const PORT = 7000;
const HOST = '10.0.0.1';

beforeEach(() => {
  repnet.resetStats();
  Object.assign(defaults, { waitTimeout: 300 });
});

const ownerOf = (options = {}, shared = false) => ({ [kOptions]: options, [kShared]: shared });

test('a flow may begin with its second connection where the client dialled our own address, or one that we are known by', () => {
  const leg = { localAddress: HOST };
  const dialled = (targetAddress, targetPort = PORT) => ({ targetAddress, targetPort });
  const may = (owner, hello) => new Origins(owner).areOurs(leg, hello, PORT);
  assert.equal(may(ownerOf(), dialled(HOST)), true);
  assert.equal(may(ownerOf(), dialled(HOST, PORT + 5)), false, 'a port that was translated');
  assert.equal(may(ownerOf(), dialled('192.0.2.1')), false, 'an address that was translated');
  const known = { addresses: ['192.0.2.1:443', '[::1]:443'] };
  assert.equal(may(ownerOf(known), dialled('192.0.2.1', 443)), true);
  assert.equal(may(ownerOf(known), dialled('192.0.2.1')), false);
  assert.equal(may(ownerOf(known), dialled(HOST)), true);
  assert.equal(
    may(ownerOf({ addresses: [] }), dialled(HOST)),
    false,
    'behind a balancer that leaves addresses alone',
  );
  assert.equal(may(ownerOf({}, true), dialled(HOST)), false, 'other processes accept, too');
  assert.equal(may(ownerOf(known, true), dialled('192.0.2.1', 443)), false);
});

/** A connection made of memory, as a server has it. */
function arrival(copy) {
  return {
    ...memoryLeg(copy),
    lost: false,
    stopped: false,
    localAddress: HOST,
    remoteAddress: '10.0.0.9',
    remotePort: 40_001,
    ref() {},
    flush() {},
    receive() {},
  };
}

const helloOf = (fields = {}) => ({
  kind: Kind.replica,
  flags: HelloFlag.early,
  threshold: 1_000,
  token: Buffer.alloc(16, 7),
  targetAddress: HOST,
  targetPort: PORT,
  patience: 0,
  version: 2,
  ...fields,
});

/** A pairing whose surroundings say what was asked of them. */
function pairing(t, options = {}, { full = false, passed = false, shared = false } = {}) {
  const seen = { refused: [], announced: [], withdrawn: 0 };
  const owner = ownerOf(options, shared);
  const made = new Pairing({
    owner,
    replication: replicationOptions(options, undefined, 0),
    port: () => PORT,
    limits: { full: () => full },
    sockets: {
      take: () => new repnet.Socket(),
      announce: (socket) => seen.announced.push(socket),
      withdraw() {
        seen.withdrawn++;
        return { close() {}, reset() {} };
      },
    },
    answers: {
      answer: () => Buffer.alloc(24),
      refuse: (_leg, reason) => seen.refused.push(reason),
    },
    origins: new Origins(owner),
    plain: { mayHavePassed: () => passed },
    secondComes: () => false,
  });
  t.after(() => {
    for (const socket of seen.announced) socket.destroy();
    made.clear();
  });
  return Object.assign(seen, { made });
}

test('what is held for a first connection that does not come is refused, after the wait', async (t) => {
  Object.assign(defaults, { waitTimeout: 40 });
  const { made, refused, announced } = pairing(t, {}, { shared: true });
  made.place(arrival(REPLICA), helloOf(), undefined);
  assert.deepEqual(refused, []);
  await until(() => refused.length > 0, 'refused');
  assert.deepEqual(refused, ['unknown']);
  assert.equal(announced.length, 0);
});

test('one that is held joins its first connection when that is accepted, after the application has been given the socket', async (t) => {
  const { made, refused } = pairing(t, {}, { shared: true });
  made.place(arrival(REPLICA), helloOf(), undefined);
  const server = net.createServer({ pauseOnConnect: true }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = net.connect(server.address().port, '127.0.0.1');
  const [connection] = await once(server, 'connection');
  server.close();
  const socket = new repnet.Socket({ handle: takeHandle(connection) });
  t.after(() => {
    client.destroy();
    socket.destroy();
  });
  assert.equal(made.acceptPrimary(socket, '10.0.0.9', 40_001), true);
  assert.equal(attachment(socket).flow, undefined);
  await Promise.resolve();
  assert.deepEqual(attachment(socket).flow?.legs.map(Boolean), [true, true]);
  assert.deepEqual(refused, []);
});

test('one whose first may have been passed by is refused at once', (t) => {
  const { made, refused } = pairing(t, {}, { shared: true, passed: true });
  made.place(arrival(REPLICA), helloOf(), undefined);
  assert.deepEqual(refused, ['unknown']);
});

test('a second connection that can be no other process’s begins the flow once nothing can have been forgotten; its first joins it', async (t) => {
  Object.assign(defaults, { waitTimeout: 40 });
  const { made, announced } = pairing(t);
  const early = arrival(REPLICA);
  made.place({ ...early, remotePort: 40_003 }, helloOf(), undefined);
  assert.equal(announced.length, 0, 'a process before this one may have the first');
  await grown();
  Object.assign(defaults, { waitTimeout: 60_000 });
  made.place(arrival(REPLICA), helloOf({ patience: 40 }), undefined);
  assert.equal(announced.length, 1);
  assert.equal(made.awaits, true);
  const handle = {
    bytesRead: 0,
    reading: false,
    readStart: () => 0,
    getpeername: () => 0,
    close() {},
    ref() {},
    unref() {},
  };
  assert.equal(made.takes(handle, '10.0.0.9', 40_005), false, 'from elsewhere');
  assert.equal(made.takes(handle, '10.0.0.9', 40_001), true);
  assert.deepEqual(attachment(announced[0]).flow.legs.map(Boolean), [true, true]);
});

test('no room: refused, and the application hears of nothing', async (t) => {
  Object.assign(defaults, { waitTimeout: 40 });
  const { made, announced, refused } = pairing(t, {}, { full: true });
  await grown();
  made.place(arrival(REPLICA), helloOf({ patience: 40 }), undefined);
  assert.deepEqual([refused, announced], [['limit'], []]);
});

test('switched off, or of an unknown origin, a first connection is told and not listed', (t) => {
  const { made } = pairing(t);
  const socket = new repnet.Socket();
  assert.equal(made.acceptPrimary(socket, undefined, undefined), true);
  repnet.disable();
  t.after(() => repnet.enable());
  assert.equal(made.acceptPrimary(socket, '10.0.0.9', 40_001), true);
  assert.equal(attachment(socket), undefined);
});

/** A connection of the system's as a leg, with its client; `fields` of what a server is. */
async function accepted(t, fields = {}, full = false) {
  const server = net.createServer({ pauseOnConnect: true }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = net.connect(server.address().port, '127.0.0.1').on('error', () => {});
  const [socket] = await once(server, 'connection');
  server.close();
  const leg = new Leg(REPLICA, nobody, takeHandle(socket), true);
  const seen = { announced: [], counted: [], client, leg };
  t.after(() => {
    client.destroy();
    for (const each of seen.announced) each.destroy();
  });
  seen.plain = new PlainConnections({
    owner: { pauseOnConnect: false, ...fields },
    port: () => PORT,
    limits: { full: () => full },
    sockets: { take: () => new repnet.Socket(), announce: (each) => seen.announced.push(each) },
    answers: { count: (_connection, reason) => seen.counted.push(reason) },
  });
  return seen;
}

test('the winner of a race: its hello is not counted, what came with it is read, and its port is the one that was dialled', async (t) => {
  const { plain, leg, announced, client } = await accepted(t);
  plain.accept(leg, Buffer.from('with the hello'));
  const [socket] = announced;
  assert.equal(socket.localPort, PORT);
  assert.equal(String((await once(socket, 'data'))[0]), 'with the hello');
  socket.write('answer');
  assert.equal(String((await once(client, 'data'))[0]), 'answer');
  assert.equal(repnet.stats().flowsAccepted, 1);
});

test('no room for a plain connection: it is counted and closed', async (t) => {
  const { plain, leg, announced, counted, client } = await accepted(t, {}, true);
  plain.accept(leg, undefined);
  assert.deepEqual([announced, counted], [[], ['limit']]);
  client.resume();
  await once(client, 'close');
});
