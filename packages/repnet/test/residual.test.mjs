/**
 * What a flow cannot tell, each with what plain net shows in its place (docs/design.md, residual cases); and elephants, which have
 * one copy once they outgrow the threshold.
 */
import assert from 'node:assert/strict';
import net from 'node:net';
import { before, test } from 'node:test';
import repnet from '../dist/index.js';
import { controlRecord, Record } from '../dist/wire.js';
import { request, serve } from './lib/exchange.mjs';
import { startRelay } from './lib/relay.mjs';
import { data, defaults, grown, hello, OWN_ADDRESS, ownPort, raw, until } from './lib/support.mjs';

before(() => {
  Object.assign(defaults, { waitTimeout: 400, pairTimeout: 800 });
});

const REPLY = { requestLength: 1_000, replyLength: 2_000 };
const ELEPHANT = { requestLength: 1_000, replyLength: 3_000_000 };

/** One flow through a relay that does `faults`; what each side saw. */
async function flow(t, faults, shape, { api = repnet, ...options } = {}) {
  const flows = new Map();
  const relay = await startRelay({ faultsFor: (_, copy) => faults.filter((fault) => fault.copy === copy) });
  const { allowHalfOpen = false } = options;
  const server =
    api === net
      ? net.createServer({ allowHalfOpen })
      : repnet.createServer({ allowHalfOpen, addresses: [`${relay.host}:${relay.port}`] });
  serve(server, flows);
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  relay.targetPort = server.address().port;
  t.after(() => {
    relay.close();
    server.close();
  });
  // A server that has just begun lets no flow start with its second connection.
  if (api === repnet) await grown();
  const { host, port } = relay;
  // The relay uses the source port again, which a connection whose port the kernel chose would not let it.
  const localPort = ownPort();
  const connect = () =>
    api.connect({
      host,
      port,
      localAddress: OWN_ADDRESS,
      localPort,
      replicate: 'flow',
      peer: 'repnet',
      ...options,
      allowHalfOpen: false,
    });
  const { client, hung, seed } = await request(connect, shape);
  // The server learns of the end after the client does.
  if (!hung) await until(() => (flows.get(seed)?.closes ?? 1) > 0, 'the server has closed');
  const tell = (side) =>
    side && {
      bytes: side.bytes,
      wrong: side.wrong,
      ends: side.ends,
      errors: side.errors.map(({ code }) => code),
    };
  return { client: tell(client), server: tell(flows.get(seed)), hung };
}

/** Where the second copy stalls in the server's direction: after its answer (24), or in the middle of a record. */
const [NOTHING_ANNOUNCED, ANNOUNCED] = [24, 24 + 10 + 600];
const finAnd = (kind, at) => [
  { copy: 0, direction: 'down', kind: 'fin', at: 500 },
  { copy: 1, direction: 'down', kind, at },
];

for (const kind of ['stall', 'rst'])
  test(`FIN on the first connection, and the second fails by ${kind}: the end is where the FIN was, as with net`, async (t) => {
    const faults = finAnd(kind, NOTHING_ANNOUNCED);
    const seen = await flow(t, faults, REPLY);
    assert.deepEqual(seen.client, { bytes: 500, wrong: -1, ends: 1, errors: [] });
    assert.deepEqual(seen.client, (await flow(t, faults, REPLY, { api: net })).client);
  });

test('… unless the second had announced more: then it is an error', async (t) => {
  const { client } = await flow(t, finAnd('rst', ANNOUNCED), REPLY);
  assert.deepEqual([client.ends, client.errors.length, client.wrong], [0, 1, -1]);
});

test('FIN on the first connection before the second has come, from a host that never paired: the end, as with net', async (t) => {
  const faults = [
    { copy: 0, direction: 'up', kind: 'fin', at: 500 },
    { copy: 1, direction: 'up', kind: 'nosyn', at: 0 },
  ];
  const seen = await flow(t, faults, REPLY, { localAddress: '127.0.0.21' });
  assert.deepEqual(seen.server.errors, []);
  assert.equal(seen.server.ends, 1);
  const plain = await flow(t, faults, REPLY, { api: net });
  assert.deepEqual(seen.server, plain.server);
});

/** A server whose application keeps its connections open; what it sees of them. */
async function patientServer(t) {
  const seen = { text: '', ended: false, errors: [], over: 0 };
  const sockets = [];
  const server = repnet.createServer({ allowHalfOpen: true }, (socket) => {
    sockets.push(socket);
    // Where the end of a connection comes by, whether it is held back or not.
    const { push, destroy } = socket;
    socket.push = (chunk, encoding) => {
      if (chunk === null) seen.over++;
      return push.call(socket, chunk, encoding);
    };
    socket.destroy = (error) => {
      if (error?.syscall === 'read') seen.over++;
      return destroy.call(socket, error);
    };
    socket.on('data', (chunk) => {
      seen.text += chunk;
    });
    socket.on('end', () => {
      seen.ended = true;
    });
    socket.on('error', (error) => seen.errors.push(error.code));
    t.after(() => socket.destroy());
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  return { seen, sockets, port: server.address().port };
}

test('… and an error if the second brings more while the application has not closed', async (t) => {
  const { seen, port } = await patientServer(t);
  const from = { localAddress: '127.0.0.22', localPort: ownPort() };
  const first = await raw(t, port, from);
  first.socket.end('half of');
  await until(() => seen.ended, 'the end of the first connection');
  const second = await raw(t, port + 1, { ...from, noDelay: true });
  second.socket.write(Buffer.concat([hello(second, port), data(0, 'half of a request')]));
  await until(() => seen.errors.length > 0, 'an error');
  assert.deepEqual([seen.text, seen.errors], ['half of', ['ERR_REPNET_TRUNCATED']]);
});

for (const way of ['end', 'resetAndDestroy'])
  test(`… but the second is waited for if the server has accepted it, and its hello is under way: ${way}`, async (t) => {
    const { seen, port } = await patientServer(t);
    const from = { localAddress: `127.0.0.${way.length}`, localPort: ownPort() };
    const second = await raw(t, port + 1, { ...from, noDelay: true });
    const first = await raw(t, port, from);
    first.socket.write('half of');
    await until(() => seen.text === 'half of', 'what the first connection brings');
    first.socket[way]();
    await until(() => seen.over > 0, 'the end of the first connection');
    second.socket.write(
      Buffer.concat([hello(second, port), data(0, 'half of a request'), controlRecord(Record.end, 17)]),
    );
    await until(() => seen.ended || seen.errors.length > 0, 'the end of the flow');
    assert.deepEqual(seen, { text: 'half of a request', ended: true, errors: [], over: 1 });
  });

for (const [what, bytes, way, errors] of [
  ['FIN', 5, 'end', []],
  ['RST beyond the threshold', 150_000, 'resetAndDestroy', ['ECONNRESET']],
])
  test(`${what} on the first connection before the second has come, from a host whose flows are paired: told at once`, async (t) => {
    const { seen, port } = await patientServer(t);
    const localAddress = '127.0.0.23';
    const pair = { host: '127.0.0.1', localAddress, replicate: 'flow', peer: 'repnet' };
    const paired = repnet.connect({ port, ...pair });
    t.after(() => paired.destroy());
    await until(() => repnet.info(paired)?.paired);
    const plain = await raw(t, port, { localAddress });
    plain.socket.write(Buffer.alloc(bytes, 'x'));
    await until(() => seen.text.length === bytes, 'what it brings');
    plain.socket[way]();
    await until(() => seen.ended || seen.errors.length > 0, 'the end');
    // What is held back comes by twice.
    assert.deepEqual([seen.errors, seen.over], [errors, 1]);
  });

/** A request by both connections, the end of which the first has told by FIN, and the second not while word of it is waited for. */
async function wordMissing(t) {
  const { seen, sockets, port } = await patientServer(t);
  const from = { localAddress: OWN_ADDRESS, localPort: ownPort() };
  const first = await raw(t, port, { ...from, allowHalfOpen: true });
  const second = await raw(t, port + 1, { ...from, noDelay: true });
  second.socket.write(Buffer.concat([hello(second, port), data(0, 'request')]));
  await until(() => repnet.info(sockets[0])?.paired, 'a flow of two connections');
  first.socket.end('request');
  await until(() => seen.ended, 'the end of the first connection');
  assert.equal(seen.text, 'request');
  return { seen, socket: sockets[0], first, second };
}

test('FIN on the first connection, and the second is silent: the end is where the FIN was, and the second carries the reply all the same', async (t) => {
  const { seen, socket, first, second } = await wordMissing(t);
  socket.end('reply');
  const reply = Buffer.concat([data(0, 'reply'), controlRecord(Record.end, 5)]);
  await until(() => second.bytes.includes(reply) || second.closed, 'the reply on the second connection');
  assert.deepEqual([second.error, second.bytes.includes(reply)], [undefined, true]);
  await until(() => first.ended, 'the reply on the first connection');
  assert.deepEqual([first.bytes.toString(), seen.errors], ['reply', []]);
});

for (const [what, bytes] of [
  ['has more', data(7, ' of more')],
  ['has more, beyond a hole', data(9, ' of more')],
  ['declares more', controlRecord(Record.end, 15)],
])
  test(`… and an error if the second ${what} while the application has not closed`, async (t) => {
    const { seen, second } = await wordMissing(t);
    second.socket.write(bytes);
    await until(() => seen.errors.length > 0, 'an error');
    assert.deepEqual([seen.text, seen.errors], ['request', ['ERR_REPNET_TRUNCATED']]);
  });

/** On whichever copy carries the elephant: the other is not doubled so far. */
const farOn = (kind) => [0, 1].map((copy) => ({ copy, direction: 'down', kind, at: 1_000_000 }));

test('the only copy of an elephant stalls: the flow stalls, as with net', async (t) => {
  const faults = farOn('stall');
  const shape = { ...ELEPHANT, timeout: 2_000 };
  const seen = await flow(t, faults, shape);
  assert.deepEqual([seen.hung, seen.client.ends, seen.client.errors, seen.client.wrong], [true, 0, [], -1]);
  assert.equal((await flow(t, faults, shape, { api: net })).hung, true);
});

for (const kind of ['rst', 'cut', 'fin'])
  test(`the only copy of an elephant fails by ${kind}: one error, never an end`, async (t) => {
    const { client, hung } = await flow(t, farOn(kind), ELEPHANT);
    assert.equal(hung, false);
    assert.deepEqual([client.ends, client.errors.length, client.wrong], [0, 1, -1]);
    assert.ok(client.bytes < ELEPHANT.replyLength);
  });

for (const kind of ['rst', 'cut', 'fin', 'stall'])
  test(`the second copy of an elephant fails by ${kind} while it is doubled: nothing happens`, async (t) => {
    const { client, server } = await flow(t, [{ copy: 1, direction: 'down', kind, at: 50_000 }], ELEPHANT);
    assert.deepEqual(client, { bytes: ELEPHANT.replyLength, wrong: -1, ends: 1, errors: [] });
    assert.deepEqual([server.ends, server.errors], [1, []]);
  });
