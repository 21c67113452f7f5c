/**
 * repnet-proxy: how its connections are replicated, by flags and by options of endpoints, and the
 * kill switch at run time.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import { before, test } from 'node:test';
import { startNode } from '../../repnet/test/apps/support/process.mjs';
import { refusals } from '../../repnet/test/apps/support/refusals.mjs';
import { collect, freePort, listen } from '../../repnet/test/apps/support/servers.mjs';
import { until } from '../../repnet/test/lib/support.mjs';

const PROXY = '../repnet-proxy/dist/main.js';
/**
 * An unmodified server on this host is given one connection: this makes it one that is elsewhere.
 */
const FAR_AWAY = new URL('../../repnet/test/lib/far-away.mjs', import.meta.url);
const ADMIN = ['--admin', '127.0.0.1:0'];
const start = (t, listens, connects, ...options) =>
  startNode(t, PROXY, ['--listen', listens, '--connect', connects, ...ADMIN, ...options]);
const portOf = ({ ready }) => ready.listening[0].port;

/** The value of a metric, whose labels are as given. */
async function metric({ ready }, name, labels = '') {
  const text = await (await fetch(`http://127.0.0.1:${ready.admin.port}/metrics`)).text();
  const line = text.split('\n').find((each) => each.startsWith(`${name}${labels} `));
  assert.notEqual(line, undefined, `${name}${labels} in\n${text}`);
  return Number(line.slice(line.lastIndexOf(' ')));
}
const flows = (proxy, mode) => metric(proxy, 'repnet_flows_total', `{mode="${mode}"}`);

async function echoed(proxy, text) {
  const socket = net.connect({ host: '127.0.0.1', port: portOf(proxy), allowHalfOpen: true });
  socket.end(text);
  return String(await collect(socket));
}

const echoServer = () =>
  net.createServer({ allowHalfOpen: true }, (socket) => socket.on('error', () => {}).pipe(socket));

/** Plain client, sidecar, `kind` connections, sidecar, plain server: the two sidecars. */
async function chain(t, kind, { near = [], far = [], query = '' } = {}) {
  const port = await listen(t, echoServer());
  const other = await start(t, 'repnet://127.0.0.1:0', `tcp://127.0.0.1:${port}`, ...far);
  const mine = await start(t, 'tcp://127.0.0.1:0', `${kind}://127.0.0.1:${portOf(other)}${query}`, ...near);
  return { near: mine, far: other };
}

for (const kind of ['flow', 'syn'])
  test(`${kind}: SIGUSR2 switches replication off for new connections, and on again`, async (t) => {
    const { near } = await chain(t, kind, { query: '?peer=repnet' });
    const enabled = () => metric(near, 'repnet_proxy_replication_enabled');
    const open = net.connect({ host: '127.0.0.1', port: portOf(near), allowHalfOpen: true });
    open.write('begun before, ');
    await once(open, 'data');
    assert.deepEqual([await enabled(), await flows(near, kind), await flows(near, 'plain')], [1, 1, 0]);

    near.kill('SIGUSR2');
    await until(async () => (await enabled()) === 0, 'it is switched off');
    for (let i = 1; i <= 3; i++) assert.equal(await echoed(near, `plain ${i}`), `plain ${i}`);
    assert.deepEqual([await flows(near, kind), await flows(near, 'plain')], [1, 3]);
    open.end('ended while it is off');
    assert.equal(String(await collect(open)), 'ended while it is off');

    near.kill('SIGUSR2');
    await until(async () => (await enabled()) === 1, 'it is switched on');
    assert.equal(await echoed(near, 'again'), 'again');
    assert.deepEqual([await flows(near, kind), await flows(near, 'plain')], [2, 3]);

    near.kill('SIGTERM');
    const { code, stderr } = await near.closed;
    assert.equal(code, 0);
    const events = stderr
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    assert.deepEqual(
      events.map(({ event, enabled }) => [event, enabled]),
      [
        ['replication', false],
        ['replication', true],
      ],
    );
  });

test('a server side that is switched off serves plain flows, and those of clients that go on replicating', async (t) => {
  const { near, far } = await chain(t, 'flow');
  assert.equal(await echoed(near, 'on'), 'on');
  far.kill('SIGUSR2');
  const enabled = () => metric(far, 'repnet_proxy_replication_enabled');
  await until(async () => (await enabled()) === 0, 'it is switched off');
  const paired = await metric(far, 'repnet_flows_paired_total');
  for (let i = 0; i < 5; i++) assert.equal(await echoed(near, 'off'), 'off');
  assert.equal(await metric(far, 'repnet_flows_paired_total'), paired);
});

/** One long message, and what of it was carried twice. */
async function doubled(t, options) {
  const { near, far } = await chain(t, 'flow', options);
  const text = 'x'.repeat(50_000);
  const socket = net.connect({ host: '127.0.0.1', port: portOf(near) });
  t.after(() => socket.destroy());
  let got = 0;
  socket.on('data', (chunk) => (got += chunk.length));
  socket.write('?');
  await until(() => got === 1, 'the first answer');
  await until(async () => (await metric(far, 'repnet_flows_paired_total')) > 0, 'a flow of two connections');
  const before = await metric(near, 'repnet_bytes_doubled_total');
  socket.write(text);
  await until(() => got === 50_001, 'all of it');
  return (await metric(near, 'repnet_bytes_doubled_total')) - before;
}

test('--threshold, and a threshold of the endpoint, which wins', async (t) => {
  assert.equal(await doubled(t, { query: '?peer=repnet' }), 50_000);
  assert.equal(await doubled(t, { query: '?peer=repnet', near: ['--threshold', '0B'] }), 0);
  assert.equal(await doubled(t, { query: '?peer=repnet&threshold=0B' }), 0);
  assert.equal(
    await doubled(t, { query: '?peer=repnet&threshold=60KB', near: ['--threshold', '0B'] }),
    50_000,
  );
});

test('--budget-bytes', async (t) => {
  assert.equal(await doubled(t, { query: '?peer=repnet', near: ['--budget-bytes', '0%'] }), 0);
});

test('--budget-connections: over it, connections are plain', async (t) => {
  const { near } = await chain(t, 'flow', { query: '?peer=repnet', near: ['--budget-connections', '0%'] });
  assert.equal(await echoed(near, 'x'), 'x');
  assert.deepEqual([await flows(near, 'flow'), await flows(near, 'plain')], [0, 1]);
});

for (const [how, options] of Object.entries({
  '--copy-delay': { near: ['--copy-delay', '60s'], query: '?peer=repnet' },
  copyDelay: { query: '?peer=repnet&copyDelay=60s' },
}))
  test(`${how}: no second connection while the first is quick`, async (t) => {
    const { near, far } = await chain(t, 'flow', options);
    assert.equal(await echoed(near, 'x'), 'x');
    assert.equal(await flows(near, 'flow'), 1);
    assert.equal(await metric(far, 'repnet_flows_paired_total'), 0);
  });

for (const [how, near, query, outcome] of [
  ['the default', ['--peer', 'plain'], '', 'end'],
  ['--loser fin', ['--peer', 'plain', '--loser', 'fin'], '', 'end'],
  ['loser=fin', [], '?peer=plain&loser=fin', 'end'],
  ['loser=rst wins over --loser fin', ['--loser', 'fin'], '?peer=plain&loser=rst', 'ECONNRESET'],
])
  test(`${how}: what an unmodified server sees of the connection that lost is ${outcome}`, async (t) => {
    const seen = [];
    const server = net.createServer({ allowHalfOpen: true }, (socket) => {
      const one = { bytes: 0, outcome: undefined };
      seen.push(one);
      socket.on('error', ({ code }) => (one.outcome = code)).on('end', () => (one.outcome ??= 'end'));
      socket.on('data', (chunk) => (one.bytes += chunk.length)).pipe(socket);
    });
    const port = await listen(t, server);
    const route = ['--listen', 'tcp://127.0.0.1:0', '--connect', `syn://127.0.0.1:${port}${query}`];
    const env = { ...process.env, NODE_OPTIONS: `--import=${FAR_AWAY}` };
    const proxy = await startNode(t, PROXY, [...route, ...ADMIN, ...near], { env });
    assert.equal(await echoed(proxy, 'x'), 'x');
    await until(() => seen.length === 2 && seen.every((one) => one.outcome !== undefined));
    assert.equal(seen.find(({ bytes }) => bytes === 0).outcome, outcome);
  });

test('the replica port of a repnet endpoint that is listened on', async (t) => {
  const port = await listen(t, echoServer());
  const replicaPort = await freePort();
  const far = await start(t, `repnet://127.0.0.1:0?replicaPort=${replicaPort}`, `tcp://127.0.0.1:${port}`);
  const near = await start(
    t,
    'tcp://127.0.0.1:0',
    `flow://127.0.0.1:${portOf(far)}?peer=repnet&replicaPort=${replicaPort}`,
  );
  assert.equal(await echoed(near, 'x'), 'x');
  await until(async () => {
    await echoed(near, 'x');
    return (await metric(far, 'repnet_flows_paired_total')) > 0;
  }, 'a flow of two connections');
});

const REFUSED = [
  ['--threshold', '100', 'ERR_QUANTITY_UNIT'],
  ['--threshold', '5GiB', 'ERR_QUANTITY'],
  ['--copy-delay', '50000min', 'ERR_QUANTITY'],
  ['--loser', 'kill', 'ERR_USAGE'],
  ['--peer', 'redis', 'ERR_USAGE'],
  ['--budget-bytes', '0.05', 'ERR_QUANTITY'],
  ['--budget-connections', '-5%', 'ERR_QUANTITY'],
];

let refused;
before(async () => {
  const route = ['--listen', 'tcp://127.0.0.1:0', '--connect', 'flow://127.0.0.1:9'];
  refused = await refusals(
    PROXY,
    REFUSED.map(([option, value]) => [...route, `${option}=${value}`]),
  );
});

for (const [n, [option, value, code]] of REFUSED.entries())
  test(`${option} ${value} is refused`, () => {
    assert.equal(refused[n].code, 2);
    assert.match(refused[n].stderr, new RegExp(`^repnet-proxy: ${option}: .*\\[${code}\\]`));
  });
