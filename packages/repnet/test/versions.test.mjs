/**
 * Versions of the wire format: bytes of a build that tells none, flows in every mode between such a build and this one, and what
 * a later one may say.
 */
import assert from 'node:assert/strict';
import net from 'node:net';
import { beforeEach, test } from 'node:test';
import { forgetPeers, peerKey, recallPeer } from '../dist/client/peers.js';
import repnet from '../dist/index.js';
import {
  ANSWER_BYTES,
  decodeAnswer,
  decodeHello,
  encodeAnswer,
  encodeHello,
  HELLO_BYTES,
  Kind,
  RecordParser,
  Refusal,
  VERSION,
} from '../dist/wire.js';
import { complete, misdeed, request, serve } from './lib/exchange.mjs';
import { firstVersion } from './lib/first-version.mjs';
import { startRelay } from './lib/relay.mjs';
import { data, defaults, echoServer, hello, ownPort, raw, until } from './lib/support.mjs';

const HOST = '127.0.0.1';
beforeEach(() => {
  forgetPeers();
  repnet.resetStats();
  Object.assign(defaults, { waitTimeout: 300, pairTimeout: 1_000 });
});

/** What a build of version 1 sent for the flow 'request', answered by the same, from 127.0.0.1:53713 to 127.0.0.2:40497. */
const FIRST = {
  hello:
    '9e5265704e65740101020000000186a04717d21408b1cabcf6b2b270462f998100000000000000000000ffff7f00000100000000000000000000ffff7f000002d1d19e31000003e80d0a0d0a',
  answer: '9e5265704e65748100000000000186a09e31000000000000',
  records: '010000070000000000007265717565737404000000000000000007',
};
const bytesOf = (name) => Buffer.from(FIRST[name], 'hex');

test('the bytes of version 1, which tell none: they are read as such, and ours differ in the version alone', () => {
  const greeting = decodeHello(bytesOf('hello'));
  assert.equal(greeting.version, 1);
  assert.deepEqual([greeting.kind, greeting.sourcePort, greeting.targetPort], [Kind.replica, 53_713, 40_497]);
  const answer = decodeAnswer(bytesOf('answer'));
  assert.deepEqual(answer, {
    refusal: Refusal.none,
    flags: 0,
    threshold: 100_000,
    port: 40_497,
    version: 1,
  });
  assert.equal(encodeHello({ ...greeting, version: 0 }).toString('hex'), FIRST.hello);
  assert.equal(encodeAnswer({ ...answer, version: 0 }).toString('hex'), FIRST.answer);
  const ours = encodeHello({ ...greeting, version: undefined });
  assert.equal(ours[10], VERSION);
  ours[10] = 0;
  assert.equal(ours.toString('hex'), FIRST.hello);
});

/** A client that sends what one of version 1 did, and a server of this version. */
test('a client of version 1: its flow is joined by both connections, and answered by version 1', async (t) => {
  const { port, sockets } = await echoServer(t, { allowHalfOpen: true });
  sockets.length = 0;
  const localPort = ownPort();
  const first = await raw(t, port, { localPort });
  first.socket.write('request');
  await until(() => sockets.length === 1);
  const second = await raw(t, port + 1, { localPort });
  second.socket.write(Buffer.concat([hello(second, port, { version: 0 }), bytesOf('records')]));
  await until(() => second.bytes.length >= ANSWER_BYTES);
  assert.deepEqual([decodeAnswer(second.bytes).refusal, second.bytes[10]], [Refusal.none, 1]);
  await until(() => repnet.stats().flowsPaired === 1);
  await until(() => first.bytes.length === 7);
  assert.deepEqual([repnet.stats().earlierPeers, sockets.length], [1, 1]);
});

/** A server that answers what one of version 1 did: its ports, and what it has heard on each. */
async function firstServer(t) {
  const seen = { first: Buffer.alloc(0), second: Buffer.alloc(0) };
  const listen = async (name, port, answers) => {
    const server = net.createServer((socket) => {
      t.after(() => socket.destroy());
      socket.on('error', () => {});
      socket.on('data', (chunk) => {
        if (name === 'second' && seen.second.length === 0) socket.write(answers());
        seen[name] = Buffer.concat([seen[name], chunk]);
      });
    });
    await new Promise((resolve) => server.listen(port, '127.0.0.1', resolve));
    t.after(() => server.close());
    return server.address().port;
  };
  const port = await listen('first', 0);
  const replicaPort = await listen('second', 0, () => {
    const answer = bytesOf('answer');
    answer.writeUInt16BE(port, 16);
    return answer;
  });
  return { port, replicaPort, seen };
}

test('a server of version 1, for which the application vouches: the answer joins the flow, whose records are of version 1', async (t) => {
  const { seen, ...ports } = await firstServer(t);
  const socket = repnet.connect({ host: HOST, ...ports, replicate: 'flow', peer: 'repnet' });
  t.after(() => socket.destroy());
  socket.end('request');
  const records = () => seen.second.subarray(HELLO_BYTES).toString('hex');
  await until(() => records() === FIRST.records, 'the records of version 1');
  assert.equal(seen.first.toString(), 'request');
  assert.deepEqual([repnet.stats().earlierPeers, repnet.stats().foreignPeers], [1, 0]);
});

test('a server of version 1, which proves nothing, hears a hello and no more on its second port', async (t) => {
  const { seen, ...ports } = await firstServer(t);
  const socket = repnet.connect({ host: HOST, ...ports, replicate: 'flow' });
  t.after(() => socket.destroy());
  socket.end('request');
  await until(() => repnet.stats().copiesFailed === 1, 'the second connection is given up');
  await until(() => seen.first.toString() === 'request', 'the request on the first');
  assert.equal(seen.second.length, HELLO_BYTES);
});

const isKnown = ({ host, port }) => recallPeer(peerKey(host, port, port + 1))?.kind === 'repnet';

const MODES = {
  'RepFlow, a server that is known': { replicate: 'flow', peer: 'repnet' },
  'RepFlow, a server that is not known': { replicate: 'flow' },
  'RepFlow, hedged': { replicate: 'flow', peer: 'repnet', copyDelay: 1 },
  RepSYN: { replicate: 'syn', peer: 'repnet' },
  'RepSYN, a server that is not known': { replicate: 'syn' },
};
for (const [name, options] of Object.entries(MODES))
  test(`${name}: flows between this build and one of version 1, at either end`, async (t) => {
    const hedged = options.copyDelay !== undefined;
    const relay = await startRelay({
      alters: firstVersion,
      // A port that the system has chosen for a plain connection is not the relay's to use, too.
      translates: options.replicate === 'syn',
      // The first connection brings nothing until the second has been begun.
      faultsFor: (_, copy) =>
        hedged && copy === 0 ? [{ copy, direction: 'up', kind: 'pause', at: 0, ms: 50 }] : [],
    });
    t.after(() => relay.close());
    const server = repnet.createServer({ addresses: [`${relay.host}:${relay.port}`] });
    const flows = new Map();
    serve(server, flows);
    await new Promise((resolve) => server.listen(0, HOST, resolve));
    t.after(() => server.close());
    relay.targetPort = server.address().port;
    const flow = async (requestLength, replyLength) => {
      const connect = () => repnet.connect({ host: relay.host, port: relay.port, ...options });
      const { client, seed, hung } = await request(connect, { requestLength, replyLength });
      await until(() => flows.get(seed)?.closes === 1);
      const sides = [client, flows.get(seed)];
      assert.deepEqual(
        [hung, ...sides.map((side) => misdeed(side, 'side')), ...sides.map(complete)],
        [false, undefined, undefined, true, true],
      );
    };
    await flow(100, 100);
    await until(() => options.peer === 'repnet' || isKnown(relay), 'it is known for one of this library');
    await flow(1_000, 90_000);
    await flow(150_000, 1_000);
    await flow(250_000, 250_000);
    assert.ok(repnet.stats().flowsFlow + repnet.stats().flowsSyn >= 3, 'the flows are replicated');
    // A flow may be over before its second connection is joined.
    if (options.replicate === 'flow')
      await until(async () => {
        if (repnet.stats().earlierPeers < 2) await flow(100, 100);
        return repnet.stats().earlierPeers >= 2;
      }, 'both ends know');
    assert.equal(repnet.stats().foreignPeers, 0);
  });

test('a later version: the answer names the one that both know, and what only a later one says is passed over', async (t) => {
  const { port, sockets } = await echoServer(t);
  const localPort = ownPort();
  const first = await raw(t, port, { localPort });
  const second = await raw(t, port + 1, { localPort });
  const later = Buffer.concat([Buffer.from('c8000005000000000000', 'hex'), Buffer.from('later')]);
  second.socket.write(
    Buffer.concat([hello(second, port, { version: 9 }), later, data(0, 'by the second'), later]),
  );
  await until(() => second.bytes.length >= ANSWER_BYTES);
  assert.equal(decodeAnswer(second.bytes).version, VERSION);
  await until(() => sockets.length === 1 && repnet.info(sockets[0]).bytesWon.replica === 13);
  first.socket.write('by the second, and the first');
  await until(() => first.bytes.toString() === 'by the second, and the first');
  assert.deepEqual([repnet.stats().earlierPeers, repnet.stats().copiesFailed], [0, 0]);
});

test('records that are passed over may be cut anywhere, and be empty', () => {
  const skipped = (type, length) => {
    const bytes = Buffer.alloc(10 + length, 0x41);
    bytes.writeUInt32BE(((type << 24) | length) >>> 0, 0);
    return bytes;
  };
  const stream = Buffer.concat([
    skipped(192, 0),
    data(0, 'one'),
    skipped(255, 300),
    data(3, 'two'),
    skipped(200, 1),
  ]);
  for (let cut = 1; cut < stream.length; cut++) {
    const got = [];
    const sink = { onData: (offset, bytes) => got.push([offset, bytes.toString()]), onControl: assert.fail };
    const parser = new RecordParser();
    for (const part of [stream.subarray(0, cut), stream.subarray(cut)]) {
      parser.feed(part, sink);
    }
    assert.equal(got.map(([, text]) => text).join(''), 'onetwo');
    assert.equal(parser.midRecord, false);
  }
  const sink = { onData: assert.fail, onControl: assert.fail };
  assert.throws(() => new RecordParser().feed(skipped(191, 0), sink), { code: 'ERR_REPNET_PROTOCOL' });
});

test("a hello of a later form is refused in words, and no byte of it is the application's", async (t) => {
  const { port, sockets } = await echoServer(t);
  const later = await raw(t, port + 1);
  const form = hello(later, port);
  form[7] = 2;
  later.socket.write(form);
  await until(() => later.bytes.length >= ANSWER_BYTES || later.closed);
  const { refusal, version } = decodeAnswer(later.bytes);
  assert.deepEqual([refusal, version], [Refusal.version, VERSION]);
  await until(() => later.closed);
  // A kind that is not known, in the form that is.
  const unknown = await raw(t, port + 1);
  unknown.socket.write(hello(unknown, port, { kind: 9, version: 9 }));
  await until(() => unknown.bytes.length >= ANSWER_BYTES || unknown.closed);
  assert.equal(decodeAnswer(unknown.bytes).refusal, Refusal.version);
  assert.equal(sockets.length, 0);
});

test('a server that refuses for a reason that is not known: the flow goes on by its first connection', async (t) => {
  const relay = await startRelay({
    onBytes: (_, copy, direction, bytes) => {
      if (copy === 1 && direction === 'down' && bytes.length >= ANSWER_BYTES) bytes[8] = 200;
    },
  });
  t.after(() => relay.close());
  const { server } = await echoServer(t, { addresses: [`${relay.host}:${relay.port}`] });
  relay.targetPort = server.address().port;
  for (let n = 0; n < 3; n++) {
    const socket = repnet.connect({ host: relay.host, port: relay.port, replicate: 'flow', peer: 'repnet' });
    t.after(() => socket.destroy());
    let text = '';
    socket.on('data', (chunk) => (text += chunk)).write('request');
    await until(() => text === 'request');
    await until(() => repnet.stats().copiesFailed > 2 * n || socket.destroyed);
    socket.write(' more');
    await until(() => text === 'request more');
  }
});
