import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { before, test } from 'node:test';
import { runNode, startNode, wholeFile } from '../../repnet/test/apps/support/process.mjs';
import { refusals } from '../../repnet/test/apps/support/refusals.mjs';
import { collect, listen } from '../../repnet/test/apps/support/servers.mjs';
import { PATIENCE, standstill, until } from '../../repnet/test/lib/support.mjs';

const PROXY = '../repnet-proxy/dist/main.js';
const startProxy = (t, ...args) => startNode(t, PROXY, args);

/** The address of the proxy's first route, to connect to. */
function address({ ready }) {
  const [first] = ready.listening;
  return typeof first === 'string' ? { path: first } : { host: '127.0.0.1', port: first.port };
}

/** [status, body] of the admin endpoint. */
async function get({ ready }, where, init) {
  const response = await fetch(`http://127.0.0.1:${ready.admin.port}${where}`, init);
  return [response.status, await response.text()];
}

async function folder(t) {
  const name = await mkdtemp(path.join(tmpdir(), 'repnet-proxy-'));
  t.after(() => rm(name, { recursive: true }));
  return name;
}

const echoServer = () =>
  net.createServer({ allowHalfOpen: true }, (socket) => socket.on('error', () => {}).pipe(socket));

async function echoed(where, text) {
  const socket = net.connect({ ...where, allowHalfOpen: true });
  socket.end(text);
  return String(await collect(socket));
}

/** A chain as it is deployed: plain client, sidecar, `kind` connections, sidecar, plain server. */
async function chain(t, kind, options = [], server = echoServer()) {
  const port = await listen(t, server);
  if (kind === 'tcp')
    return startProxy(t, '--listen', 'tcp://127.0.0.1:0', '--connect', `tcp://127.0.0.1:${port}`, ...options);
  const far = await startProxy(t, '--listen', 'repnet://127.0.0.1:0', '--connect', `tcp://127.0.0.1:${port}`);
  return startProxy(
    t,
    '--listen',
    'tcp://127.0.0.1:0',
    '--connect',
    `${kind}://127.0.0.1:${address(far).port}`,
    ...options,
  );
}

const file = wholeFile();

for (const kind of ['tcp', 'syn', 'flow']) {
  let proxy;
  before(async () => {
    proxy = await chain(file, kind);
  });

  test(`${kind}: bytes pass both ways and each end is carried by itself`, async () => {
    assert.equal(await echoed(address(proxy), 'hello'), 'hello');
  });

  test(`${kind}: a long stream passes whole`, async () => {
    const long = 'abcdefghij'.repeat(500_000);
    assert.equal(await echoed(address(proxy), long), long);
  });

  test(`${kind}: many connections at a time do not mix`, async () => {
    const answers = await Promise.all(Array.from({ length: 100 }, (_, i) => echoed(address(proxy), `${i}`)));
    assert.deepEqual(
      answers,
      Array.from({ length: 100 }, (_, i) => `${i}`),
    );
  });

  test(`${kind}: a server that resets is a reset for the client, never an end`, async (t) => {
    const server = net.createServer((socket) =>
      socket.on('error', () => {}).once('data', () => socket.resetAndDestroy()),
    );
    const proxy = await chain(t, kind, [], server);
    const socket = net.connect(address(proxy));
    socket.write('x');
    const [error] = await once(socket.resume(), 'error');
    assert.equal(error.code, 'ECONNRESET');
  });

  test(`${kind}: a client that resets is a reset for the server, never an end`, async (t) => {
    const server = net.createServer();
    const proxy = await chain(t, kind, [], server);
    const socket = net.connect(address(proxy));
    socket.write('x');
    const [accepted] = await once(server, 'connection');
    const ended = Promise.race([
      once(accepted, 'error').then(([error]) => error.code),
      once(accepted, 'end').then(() => 'end'),
    ]);
    await once(accepted, 'data');
    socket.resetAndDestroy();
    assert.equal(await ended, 'ECONNRESET');
  });
}

test('syn reaches a server that knows nothing of it', async (t) => {
  const port = await listen(t, echoServer());
  const proxy = await startProxy(t, '--listen', 'tcp://127.0.0.1:0', '--connect', `syn://127.0.0.1:${port}`);
  assert.equal(await echoed(address(proxy), 'hello'), 'hello');
});

test('flow to a server that knows nothing of it goes on plain', async (t) => {
  const port = await listen(t, echoServer());
  const proxy = await startProxy(t, '--listen', 'tcp://127.0.0.1:0', '--connect', `flow://127.0.0.1:${port}`);
  assert.equal(await echoed(address(proxy), 'hello'), 'hello');
});

test('a destination that refuses is a reset for the client, and the log says why', async (t) => {
  const proxy = await startProxy(t, '--listen', 'tcp://127.0.0.1:0', '--connect', 'tcp://127.0.0.1:1');
  const [error] = await once(net.connect(address(proxy)), 'error');
  assert.equal(error.code, 'ECONNRESET');
  proxy.kill('SIGTERM');
  const { stderr } = await proxy.closed;
  assert.match(stderr, /"end":"connect-failed","error":"ECONNREFUSED"/);
});

test('a Unix socket on both sides, with its permissions', async (t) => {
  const place = await folder(t);
  const server = echoServer();
  server.listen(path.join(place, 'server.sock'));
  await once(server, 'listening');
  t.after(() => server.close());
  const near = path.join(place, 'near.sock');
  const proxy = await startProxy(
    t,
    '--listen',
    `unix:${near}`,
    '--connect',
    `unix:${path.join(place, 'server.sock')}`,
    '--socket-mode',
    '0600',
  );
  assert.equal((await stat(near)).mode & 0o777, 0o600);
  assert.equal(await echoed({ path: near }, 'hello'), 'hello');
  proxy.kill('SIGTERM');
  assert.equal((await proxy.closed).code, 0);
  await assert.rejects(stat(near), { code: 'ENOENT' });
});

test('a Unix socket left behind is replaced, one in use is not', async (t) => {
  const near = path.join(await folder(t), 'near.sock');
  const args = ['--listen', `unix:${near}`, '--connect', 'tcp://127.0.0.1:1'];
  const first = await startProxy(t, ...args);
  const { code, stderr } = await runNode(PROXY, args);
  assert.equal(code, 1);
  assert.match(stderr, /EADDRINUSE/);
  first.kill('SIGKILL');
  await first.closed;
  const second = await startProxy(t, ...args);
  assert.deepEqual(address(second), { path: near });
});

test('what is no socket is not replaced by one', async (t) => {
  const place = await folder(t);
  const file = path.join(place, 'notes.txt');
  await writeFile(file, 'notes');
  const link = path.join(place, 'link');
  await symlink(file, link);
  for (const near of [file, link]) {
    const args = ['--listen', `unix:${near}`, '--connect', 'tcp://127.0.0.1:1'];
    const { code, stderr } = await runNode(PROXY, args, { timeout: PATIENCE });
    assert.equal(code, 1);
    assert.match(stderr, /EADDRINUSE/);
    assert.equal(await readFile(near, 'utf8'), 'notes');
  }
});

test('a connection over --max-connections is reset and counted', async (t) => {
  const proxy = await chain(t, 'tcp', ['--max-connections', '1', '--admin', '127.0.0.1:0']);
  const first = net.connect(address(proxy));
  first.write('x');
  await once(first, 'data');
  const [error] = await once(net.connect(address(proxy)), 'error');
  assert.equal(error.code, 'ECONNRESET');
  const [, metrics] = await get(proxy, '/metrics');
  assert.match(metrics, /^repnet_proxy_rejected_total\{.*\} 1$/m);
  assert.match(metrics, /^repnet_proxy_open_connections\{.*\} 1$/m);
  first.end();
  await once(first, 'close');
  assert.equal(await echoed(address(proxy), 'again'), 'again');
});

test('an idle connection is reset after --idle-timeout, a busy one is not', async (t) => {
  const proxy = await chain(t, 'tcp', ['--idle-timeout', '5s']);
  // Of processes that stood still for a good part of that it says nothing.
  for (let longest = 5_000; longest > 2_500; ) {
    const idle = net.connect(address(proxy));
    const busy = net.connect(address(proxy));
    const beat = setInterval(() => busy.write('x'), 50);
    t.after(() => clearInterval(beat));
    let [last, answers, resets] = [performance.now(), 0, 0];
    longest = 0;
    const alive = () => {
      longest = Math.max(longest, performance.now() - last);
      last = performance.now();
    };
    busy.on('data', () => ++answers && alive()).on('error', () => resets++);
    const [error] = await once(idle, 'error');
    assert.equal(error.code, 'ECONNRESET');
    const before = answers;
    await until(() => answers > before || resets > 0, 'another answer');
    alive();
    busy.destroy();
    clearInterval(beat);
    if (longest <= 2_500) assert.deepEqual([resets, before > 0], [0, true]);
  }
});

test('health, readiness and metrics are served; other paths and methods are refused', async (t) => {
  const proxy = await chain(t, 'tcp', ['--admin', '127.0.0.1:0']);
  assert.equal(await echoed(address(proxy), 'hello'), 'hello');
  assert.deepEqual(await get(proxy, '/healthz'), [200, 'ok\n']);
  assert.deepEqual(await get(proxy, '/readyz'), [200, 'ready\n']);
  assert.equal((await get(proxy, '/nothing'))[0], 404);
  assert.equal((await get(proxy, '/metrics', { method: 'POST' }))[0], 405);
  const [, metrics] = await get(proxy, '/metrics');
  assert.match(metrics, /^repnet_proxy_accepted_total\{route="tcp:\/\/127.0.0.1:0 > tcp:.*"\} 1$/m);
  assert.match(metrics, /^repnet_flows_total\{mode="flow"\} \d+$/m);
});

test('SIGTERM lets connections end, refuses new ones and says so to readiness', async (t) => {
  const proxy = await chain(t, 'flow', ['--admin', '127.0.0.1:0', '--drain-timeout', '10min']);
  const socket = net.connect({ ...address(proxy), allowHalfOpen: true });
  socket.write('before ');
  await once(socket, 'data');
  proxy.kill('SIGTERM');
  await until(async () => (await get(proxy, '/readyz'))[0] !== 200, 'it is not ready any more');
  // Between readiness going down and the port closing the kernel may still take one, which is then
  // reset.
  await assert.rejects(
    echoed(address(proxy), 'x'),
    ({ code }) => code === 'ECONNREFUSED' || code === 'ECONNRESET',
  );
  socket.end('after');
  assert.equal(String(await collect(socket)), 'after');
  const { code, stderr } = await proxy.closed;
  assert.equal(code, 0, stderr);
});

test('with --drain-delay it still accepts while readiness is down', async (t) => {
  const proxy = await chain(t, 'tcp', ['--admin', '127.0.0.1:0', '--drain-delay', '10min']);
  proxy.kill('SIGTERM');
  await until(async () => (await get(proxy, '/readyz'))[0] !== 200, 'it is not ready any more');
  assert.equal(await echoed(address(proxy), 'still'), 'still');
  proxy.kill('SIGTERM'); // a second one ends it at once
  assert.equal((await proxy.closed).code, 1);
});

test('what has not ended after --drain-timeout is reset, exit code 1', async (t) => {
  const proxy = await chain(t, 'tcp', ['--drain-timeout', '100ms']);
  const socket = net.connect(address(proxy));
  socket.write('x');
  await once(socket, 'data');
  proxy.kill('SIGTERM');
  const [error] = await once(socket, 'error');
  assert.equal(error.code, 'ECONNRESET');
  const { code, stderr } = await proxy.closed;
  assert.equal(code, 1);
  assert.match(stderr, /1 connections had not ended/);
});

test('a slow reader holds the writer back instead of filling the sidecar', async (t) => {
  let far;
  const port = await listen(
    t,
    net.createServer((socket) => (far = socket.pause())),
  );
  const proxy = await startProxy(t, '--listen', 'tcp://127.0.0.1:0', '--connect', `tcp://127.0.0.1:${port}`);
  const socket = net.connect(address(proxy));
  const chunk = Buffer.alloc(1 << 20);
  let accepted = 0;
  for (let i = 0; i < 64; i++) socket.write(chunk, () => accepted++);
  // The kernel's buffers fill and then nothing moves: the count stands still while the reader is
  // paused.
  await until(() => accepted > 0, 'what the kernel has room for');
  await standstill(() => accepted);
  assert.ok(accepted < 48, `${accepted} of 64 MiB were taken although nobody reads`);
  far.resume();
  await until(
    () => accepted === 64,
    'all of it is taken',
    () => accepted,
  );
  socket.destroy();
});

test('a command line that is refused ends the program with code 2', async () => {
  const { code, stderr } = await runNode(PROXY, []);
  assert.equal(code, 2);
  assert.match(stderr, /^repnet-proxy: .*\[ERR_USAGE\]\n$/);
});

const REFUSED = [
  ['an unpaired route', ['--listen', 'tcp://127.0.0.1:0'], 'ERR_USAGE'],
  ['a bad endpoint', ['--listen', 'tcp://x', '--connect', 'tcp://y:1'], 'ERR_ENDPOINT'],
  [
    'a time longer than timers go',
    ['--listen', 'unix:/x', '--connect', 'tcp://y:1', '--drain-timeout', '50000min'],
    'ERR_QUANTITY',
  ],
  ['a bad mode', ['--listen', 'unix:/x', '--connect', 'tcp://y:1', '--socket-mode', '9'], 'ERR_USAGE'],
];

let refused;
before(async () => {
  refused = await refusals(
    PROXY,
    REFUSED.map(([, args]) => args),
  );
});

for (const [n, [what, , code]] of REFUSED.entries())
  test(`a command line with ${what} is refused in one line, exit code 2`, () => {
    assert.equal(refused[n].code, 2);
    assert.match(refused[n].stderr, new RegExp(`^repnet-proxy: .*\\[${code}\\]\\n$`));
  });

test('a port in use is an error, exit code 1', async (t) => {
  const port = await listen(t, echoServer());
  const { code, stderr } = await runNode(PROXY, [
    '--listen',
    `tcp://127.0.0.1:${port}`,
    '--connect',
    'tcp://127.0.0.1:1',
  ]);
  assert.equal(code, 1);
  assert.match(stderr, /EADDRINUSE/);
});

test('an --admin port in use is an error, exit code 1, and nothing stays open', async (t) => {
  const port = await listen(t, echoServer());
  const near = path.join(await folder(t), 'near.sock');
  const args = ['--listen', `unix:${near}`, '--connect', 'tcp://127.0.0.1:1', '--admin', `127.0.0.1:${port}`];
  const { code, stderr } = await runNode(PROXY, args, { timeout: PATIENCE });
  assert.equal(code, 1);
  assert.match(stderr, /EADDRINUSE/);
  await assert.rejects(stat(near), { code: 'ENOENT' });
});
