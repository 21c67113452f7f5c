/** What each option may be, where a bad one is named, and when: at the earliest place that knows of it. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { beforeEach, test } from 'node:test';
import { createServer as createHttpServer } from '../dist/adapters/http.js';
import { forgetPeers } from '../dist/client/peers.js';
import repnet from '../dist/index.js';
import { defaults, echo, echoServer } from './lib/support.mjs';

const HOST = '127.0.0.1';
const before = { ...defaults, budget: { ...defaults.budget } };
beforeEach(() => {
  forgetPeers();
  Object.assign(defaults, before);
});

/** An ERR_REPNET_OPTION that names the option and the value. */
const refusing = (name, value) => (error) => {
  assert.equal(error.code, 'ERR_REPNET_OPTION');
  assert.ok(error.message.startsWith(`${name} is `), error.message);
  assert.ok(error.message.includes(typeof value === 'object' ? '' : String(value)), error.message);
  return true;
};

const BEYOND_A_TIMER = 2 ** 31;
const ANYWHERE = {
  replicate: ['off', 1, {}],
  threshold: [-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 32, '100'],
  lull: [-1, Number.NaN, Number.POSITIVE_INFINITY, BEYOND_A_TIMER, '1'],
  coldDelay: [0, -1, Number.NaN, Number.POSITIVE_INFINITY, BEYOND_A_TIMER, '1'],
  copyDelay: ['p0', 'p100', -1, Number.NaN, Number.POSITIVE_INFINITY, BEYOND_A_TIMER, '1'],
  pairTimeout: [-1, Number.NaN, Number.POSITIVE_INFINITY, BEYOND_A_TIMER, '1'],
  hedgeOn: ['reply', 1],
  loser: ['kill'],
  peer: ['redis'],
};
const OF_ONE = { ...ANYWHERE, replicaPort: [0, 70_000, 1.5, '7001'] };
const OF_A_SERVER = { ...OF_ONE, addresses: ['h:1', [1], ['h'], ['h:port']] };
const OF_THE_PROCESS = {
  ...ANYWHERE,
  enabled: ['no', 0, undefined],
  waitTimeout: [0, -1, Number.NaN, Number.POSITIVE_INFINITY, BEYOND_A_TIMER],
  control: [-0.1, 1.1, Number.NaN, '0.05'],
  waitEntries: [0, -1, 1.5, Number.POSITIVE_INFINITY],
  archiveBytes: [-1, 0.5, Number.POSITIVE_INFINITY],
};

for (const [name, values] of Object.entries(OF_ONE))
  test(`${name}: a bad one of a connection is thrown by connect`, () => {
    for (const value of values) {
      const options = { host: HOST, port: 9, replicate: 'flow', [name]: value };
      assert.throws(() => repnet.connect(options), refusing(name, value));
      const socket = new repnet.Socket({ replicate: 'flow', [name]: value });
      assert.throws(() => socket.connect(9, HOST), refusing(name, value));
    }
  });

for (const [name, values] of Object.entries(OF_A_SERVER))
  test(`${name}: a bad one of a server is thrown by what makes the server`, () => {
    for (const value of values) {
      const options = { [name]: value };
      assert.throws(
        () => repnet.createServer(options),
        refusing(name, Array.isArray(value) ? value[0] : value),
      );
      assert.throws(() => new repnet.Server(options), { code: 'ERR_REPNET_OPTION' });
      assert.throws(() => createHttpServer(options), { code: 'ERR_REPNET_OPTION' });
    }
  });

for (const [name, values] of Object.entries(OF_THE_PROCESS))
  test(`${name}: a bad default is refused where it is assigned, and changes nothing`, () => {
    for (const value of values) {
      assert.throws(
        () => {
          defaults[name] = value;
        },
        refusing(name, value),
      );
      assert.deepEqual(defaults[name], before[name]);
    }
  });

test('budget: both fractions, each by itself, too', () => {
  for (const budget of [
    {},
    { bytes: 1 },
    { bytes: -1, connections: 1 },
    { bytes: 1, connections: Number.NaN },
    null,
    0.05,
  ])
    assert.throws(
      () => {
        defaults.budget = budget;
      },
      { code: 'ERR_REPNET_OPTION' },
    );
  assert.deepEqual({ ...defaults.budget }, before.budget);
  defaults.budget = { bytes: 0.05, connections: Number.POSITIVE_INFINITY };
  defaults.budget.connections = 0.1;
  assert.deepEqual({ ...defaults.budget }, { bytes: 0.05, connections: 0.1 });
  assert.throws(
    () => {
      defaults.budget.bytes = 'all';
    },
    refusing('budget.bytes', 'all'),
  );
  assert.equal(defaults.budget.bytes, 0.05);
});

test('a default that there is not is no default', () => {
  assert.throws(
    () => {
      defaults.treshold = 1;
    },
    { code: 'ERR_REPNET_OPTION' },
  );
  assert.equal('treshold' in defaults, false);
});

test('what there is to assign may be assigned, and holds for the next flow', async (t) => {
  Object.assign(defaults, {
    threshold: 0,
    lull: 0.5,
    copyDelay: 0,
    pairTimeout: 2 ** 31 - 1,
    replicate: true,
  });
  assert.equal(defaults.replicate, 'flow');
  const { port } = await echoServer(t);
  const socket = repnet.connect({ host: HOST, port, peer: 'repnet' });
  t.after(() => socket.destroy());
  assert.equal(await echo(socket, 'x'), 'x');
});

test('null and undefined leave an option to the default', async (t) => {
  const { port } = await echoServer(t, { threshold: undefined, loser: null, replicate: undefined });
  const socket = repnet.connect({ host: HOST, port, threshold: null, lull: undefined, replicate: null });
  t.after(() => socket.destroy());
  assert.equal(await echo(socket, 'x'), 'x');
});

test('one port for both connections: thrown by connect, an error of the server', async (t) => {
  const options = { host: HOST, port: 7_000, replicaPort: 7_000, replicate: 'flow' };
  assert.throws(() => repnet.connect(options), refusing('replicaPort', 7_000));
  for (let attempt = 0; ; attempt++) {
    const { server: other, port } = await echoServer(t, { replicate: false });
    const closed = once(other, 'close');
    other.close();
    await closed;
    const server = repnet.createServer({ replicaPort: port }).listen(port, HOST);
    const [error] = await once(server, 'error');
    // Another process may have taken it meanwhile.
    if (error.code === 'EADDRINUSE' && attempt < 20) continue;
    refusing('replicaPort', port)(error);
    assert.equal(server.listening, false);
    return;
  }
});
