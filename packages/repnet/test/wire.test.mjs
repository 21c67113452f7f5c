/**
 * What goes over the wire, as docs/wire-format.md has it: bytes that were captured between client and server, taken apart by the
 * tables of that page alone.
 */
import assert from 'node:assert/strict';
import net from 'node:net';
import { before, beforeEach, test } from 'node:test';
import { forgetPeers } from '../dist/client/peers.js';
import repnet from '../dist/index.js';
import { lostSyns } from './lib/lost-syns.mjs';
import { startRelay } from './lib/relay.mjs';
import { defaults, settle, until } from './lib/support.mjs';

const HELLO = 76;
const ANSWER = 24;
const MAGIC = '9e5265704e6574';
const DATA = 1;
const STOP = 2;
const END = 4;
const JOINED = 4;

before(() => {
  Object.assign(defaults, { waitTimeout: 300, pairTimeout: 1_000 });
});
beforeEach(() => {
  forgetPeers();
  repnet.resetStats();
});

const address = (bytes, at) => {
  const mapped = bytes.toString('hex', at, at + 12);
  assert.equal(mapped, '00000000000000000000ffff');
  return [...bytes.subarray(at + 12, at + 16)].join('.');
};

/** The fields of a hello, by the page's table. */
function hello(bytes) {
  assert.equal(bytes.toString('hex', 0, 8), `${MAGIC}01`);
  assert.deepEqual([bytes[10], bytes[11]], [2, 0]);
  assert.equal(bytes.toString('latin1', 72, HELLO), '\r\n\r\n');
  return {
    kind: bytes[8],
    flags: bytes[9],
    threshold: bytes.readUInt32BE(12),
    token: bytes.toString('hex', 16, 32),
    source: bytes.readUInt16BE(64),
    target: bytes.readUInt16BE(66),
    patience: bytes.readUInt32BE(68),
  };
}

function answer(bytes) {
  assert.equal(bytes.toString('hex', 0, 8), `${MAGIC}81`);
  assert.equal(bytes[11], 0);
  return {
    refusal: bytes[8],
    flags: bytes[9],
    version: bytes[10],
    threshold: bytes.readUInt32BE(12),
    port: bytes.readUInt16BE(16),
    tellsLife: bytes.readUIntBE(18, 6) !== 0,
  };
}

/** Records, to the last whole one: { type, offset, payload }. */
function records(bytes) {
  const seen = [];
  for (let at = 0; at + 10 <= bytes.length; ) {
    const length = bytes.readUIntBE(at + 1, 3);
    if (at + 10 + length > bytes.length) break;
    seen.push({
      type: bytes[at],
      offset: bytes.readUIntBE(at + 4, 6),
      payload: bytes.subarray(at + 10, at + 10 + length),
    });
    at += 10 + length;
  }
  return seen;
}

const ofType = (type, bytes) => records(bytes).filter((record) => record.type === type);

/** The stream that the data records of a copy make up; they are without a hole in what is asked for here. */
function stream(bytes) {
  let text = '';
  for (const { offset, payload } of ofType(DATA, bytes)) {
    assert.equal(offset, text.length);
    text += payload.toString('latin1');
  }
  return text;
}

/** A client and a server with a relay between them that writes down what passes. */
async function captured(t, { faults = [], server: serverOptions = {}, onSocket } = {}) {
  const log = [];
  const relay = await startRelay({
    faultsFor: (_, copy) => faults.filter((fault) => fault.copy === copy),
    onBytes: (port, copy, direction, bytes) => log.push({ port, copy, direction, bytes: Buffer.from(bytes) }),
  });
  const sockets = [];
  const server = repnet.createServer(
    { addresses: [`${relay.host}:${relay.port}`], ...serverOptions },
    (socket) => {
      sockets.push(socket);
      socket.on('error', () => {});
      (onSocket ?? ((each) => each.pipe(each)))(socket);
    },
  );
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  relay.targetPort = server.address().port;
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    relay.close();
    server.close();
  });
  const bytes = (copy, direction) =>
    Buffer.concat(
      log.filter((each) => each.copy === copy && each.direction === direction).map((each) => each.bytes),
    );
  const dial = (options = {}) => {
    const { host, port } = relay;
    const socket = repnet.connect({ host, port, replicate: 'flow', ...options });
    t.after(() => socket.destroy());
    const seen = { text: '', ended: false };
    socket
      .on('error', () => {})
      .on('data', (chunk) => (seen.text += chunk.toString('latin1')))
      .on('end', () => (seen.ended = true));
    return Object.assign(seen, { socket });
  };
  return { relay, log, bytes, dial, sockets };
}

test('both connections of a flow leave from one source port, to p and p + 1, and the hello says from where to where', async (t) => {
  const { relay, log, bytes, dial } = await captured(t);
  const client = dial({ peer: 'repnet', threshold: 12_345, copyDelay: 0, pairTimeout: 1_250 });
  client.socket.end('request');
  await until(() => client.ended);
  await until(() => bytes(1, 'up').length > HELLO);
  const localPort = log[0].port;
  assert.deepEqual(new Set(log.map(({ port }) => port)), new Set([localPort]));
  assert.deepEqual(new Set(log.map(({ copy }) => copy)), new Set([0, 1]));
  const said = bytes(1, 'up');
  const { kind, threshold, source, target, patience } = hello(said);
  assert.deepEqual(
    { kind, threshold, source, target, patience },
    {
      kind: 1,
      threshold: 12_345,
      source: localPort,
      target: relay.port,
      patience: 1_250,
    },
  );
  assert.equal(address(said, 32), '127.0.0.1');
  assert.equal(address(said, 48), relay.host);
});

test('the first connection carries the bytes of the application and nothing else', async (t) => {
  const { bytes, dial } = await captured(t);
  const client = dial({ peer: 'repnet' });
  client.socket.end('request');
  await until(() => client.ended);
  await settle();
  assert.equal(bytes(0, 'up').toString(), 'request');
  assert.equal(bytes(0, 'down').toString(), 'request');
});

test('the replica carries the same in records, and the total at the end', async (t) => {
  const { relay, bytes, dial } = await captured(t);
  const client = dial({ peer: 'repnet' });
  client.socket.write('re');
  await until(() => client.text === 're');
  client.socket.end('quest');
  await until(() => client.ended);
  await until(() => ofType(END, bytes(1, 'down').subarray(ANSWER)).length === 1);
  const up = bytes(1, 'up').subarray(HELLO);
  const down = bytes(1, 'down').subarray(ANSWER);
  assert.deepEqual(answer(bytes(1, 'down')), {
    refusal: 0,
    flags: JOINED,
    version: 2,
    threshold: 100_000,
    port: relay.port,
    tellsLife: true,
  });
  for (const direction of [up, down]) {
    assert.equal(stream(direction), 'request');
    assert.deepEqual(
      ofType(END, direction).map(({ offset }) => offset),
      [7],
    );
  }
});

for (const peer of ['auto', 'repnet'])
  test(`a server gets the hello alone, and records only when it has answered (peer: '${peer}')`, async (t) => {
    const { log, bytes, dial } = await captured(t);
    const client = dial({ peer });
    client.socket.write('secret');
    await until(() => stream(bytes(1, 'up').subarray(HELLO)) === 'secret', 'the replica has caught up');
    const replica = log.filter(({ copy }) => copy === 1);
    const answered = replica.findIndex(({ direction }) => direction === 'down');
    const before = replica.slice(0, answered).map((each) => each.bytes);
    assert.equal(Buffer.concat(before).length, HELLO);
    assert.equal(replica[answered].bytes.length >= ANSWER, true);
  });

test('stop: the receiver of a copy that trails says how far it has come, and no more of that message is doubled', async (t) => {
  const LONG = 60_000;
  const served = [];
  const { bytes, dial } = await captured(t, {
    // The replica brings its first bytes when the first connection has brought all of them.
    faults: [{ copy: 1, direction: 'down', kind: 'pause', at: ANSWER, ms: 250 }],
    // One message, however long its parts are apart.
    server: { lull: 60_000 },
    onSocket: (socket) => {
      served.push(socket);
      socket.on('data', (chunk) => {
        if (chunk.toString() !== 'long') return socket.write('short');
        // Two records: when the first of them comes, the other is what the copy trails by.
        socket.write('x'.repeat(LONG / 6));
        socket.write('x'.repeat((5 * LONG) / 6));
      });
    },
  });
  const client = dial({ peer: 'repnet' });
  await until(() => repnet.stats().flowsPaired === 1);
  client.socket.write('long');
  const down = () => bytes(1, 'down').subarray(ANSWER);
  const stops = () => ofType(STOP, bytes(1, 'up').subarray(HELLO));
  await until(() => stops().length === 1, 'the stop');
  assert.deepEqual(stops(), [{ type: STOP, offset: LONG, payload: Buffer.alloc(0) }]);
  await until(() => repnet.stats().doublingStopped === 1, 'it is heeded');
  served[0].write('the rest of it');
  await until(() => client.text.length === LONG + 14);
  await settle();
  assert.equal(stream(down()).length, LONG, 'the rest is carried once');
  // The client speaks: what the server writes next is another message, and doubled again.
  client.socket.write('?');
  await until(() => client.text.endsWith('short'));
  await until(() => ofType(DATA, down()).at(-1).payload.toString() === 'short', 'doubled again');
  assert.equal(ofType(DATA, down()).at(-1).offset, LONG + 14);
});

/** A server on one port that keeps what it gets, and says `answer` to the first of it. */
async function sink(t, answer) {
  const got = [];
  const server = net.createServer((socket) => {
    const seen = { bytes: Buffer.alloc(0) };
    got.push(seen);
    t.after(() => socket.destroy());
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      if (answer !== undefined && seen.bytes.length === 0) socket.write(answer);
      seen.bytes = Buffer.concat([seen.bytes, chunk]);
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  return { got, port: server.address().port };
}

test('raw: a second connection of a RepSYN race asks for a proof first, says where it comes from to nobody, and goes on as a plain stream', async (t) => {
  const PROOF = Buffer.alloc(24);
  PROOF.write(`${MAGIC}81`, 'hex');
  PROOF.writeUInt16BE(9, 16);
  const { got, port } = await sink(t, PROOF);
  await lostSyns(t, (to) => to === 9);
  const socket = repnet.connect({
    host: '127.0.0.1',
    port: 9,
    replicaPort: port,
    replicate: 'syn',
    peer: 'repnet',
  });
  t.after(() => socket.destroy());
  socket.write('request');
  await until(() => got[0]?.bytes.length >= 2 * HELLO + 7);
  const [{ bytes }] = got;
  const [question, winner] = [bytes, bytes.subarray(HELLO)].map(hello);
  assert.deepEqual([question.kind, winner.kind], [5, 2]);
  assert.deepEqual([question.target, winner.target], [9, 9]);
  for (const at of [0, HELLO]) assert.ok(bytes.subarray(at + 32, at + 66).every((byte) => byte === 0));
  assert.equal(bytes.subarray(2 * HELLO).toString(), 'request');
});

test('an answer names the first port of the server: the one that was asked for, if it is known by that', async (t) => {
  const { relay, sockets } = await captured(t);
  const own = relay.targetPort;
  for (const [asked, named] of [
    [own, own],
    [relay.port, relay.port],
    [9, own],
  ]) {
    const connection = net.connect(own + 1, '127.0.0.1');
    t.after(() => connection.destroy());
    const probe = Buffer.alloc(HELLO);
    probe.write(`${MAGIC}0103`, 'hex');
    probe.writeUInt16BE(asked, 66);
    probe.write('\r\n\r\n', 72);
    connection.write(probe);
    let bytes = Buffer.alloc(0);
    connection.on('data', (chunk) => (bytes = Buffer.concat([bytes, chunk])));
    await until(() => bytes.length === ANSWER);
    assert.equal(answer(bytes).port, named);
  }
  assert.equal(sockets.length, 0);
});

test('probe: to an unknown server RepSYN asks by a hello and nothing more', async (t) => {
  const asked = await sink(t);
  const { port } = await sink(t);
  const socket = repnet.connect({ host: '127.0.0.1', port, replicaPort: asked.port, replicate: 'syn' });
  t.after(() => socket.destroy());
  socket.write('request');
  await until(() => asked.got.some(({ bytes }) => bytes.length >= HELLO));
  await settle();
  const [{ bytes }] = asked.got;
  assert.equal(bytes.length, HELLO);
  assert.equal(hello(bytes).kind, 3);
});
