import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { before, test } from 'node:test';
import { root, runNode, startNode, wholeFile } from '../../repnet/test/apps/support/process.mjs';
import { refusals } from '../../repnet/test/apps/support/refusals.mjs';
import { freePort, listen } from '../../repnet/test/apps/support/servers.mjs';

const BENCH = '../repnet-bench/dist/main.js';
/** No flow is given up because the machine is busy, unless a test is about that. */
const PATIENT = ['--timeout', '10min'];
const bench = (command, ...args) =>
  runNode(BENCH, [command, ...args, ...(command === 'client' && !args.includes('--timeout') ? PATIENT : [])]);
const startServer = (t, ...args) =>
  startNode(t, BENCH, ['server', '--listen', '127.0.0.1:0', '--wait-timeout', '200ms', ...args]);

/** A server for tests that are not about it. */
const file = wholeFile();
let shared;
before(async () => {
  shared = await startServer(file);
});

async function folder(t) {
  const name = await mkdtemp(path.join(tmpdir(), 'repnet-bench-'));
  t.after(() => rm(name, { recursive: true }));
  return name;
}

/** The rows of a CSV as objects. */
function parseRows(csv) {
  const [header, ...lines] = csv
    .trimEnd()
    .split('\n')
    .map((line) => line.split(','));
  return lines.map((cells) => Object.fromEntries(header.map((name, index) => [name, cells[index]])));
}

const HEADER =
  'flow,group,mode,replicated,to,direction,bytes,scheduled_ns,start_ns,connect_ns,fct_ns,delivered_ns,winner_up,winner_down,verified_bytes,status';

for (const mode of ['net', 'off', 'syn', 'flow']) {
  for (const direction of ['up', 'down']) {
    test(`mode ${mode}, ${direction}: every flow arrives and is verified`, async () => {
      const to = `127.0.0.1:${shared.ready.port}`;
      const { code, stdout, stderr } = await bench(
        'client',
        '--to',
        to,
        '--bytes',
        '30KB',
        '--closed',
        '4',
        '--flows',
        '40',
        '--mode',
        mode,
        '--direction',
        direction,
      );
      assert.equal(code, 0, stderr);
      assert.equal(stdout.split('\n')[0], HEADER);
      const rows = parseRows(stdout);
      assert.deepEqual(
        rows.map(({ flow }) => Number(flow)).sort((a, b) => a - b),
        Array.from({ length: 40 }, (_, id) => id),
      );
      // With RepSYN the first ones find out what the server is.
      const replicated = rows.filter((row) => row.replicated === '1');
      assert.equal(replicated.length > 0, mode === 'syn' || mode === 'flow');
      for (const row of rows) {
        assert.deepEqual([row.status, row.verified_bytes, row.mode], ['ok', '30000', mode]);
        if (mode !== 'flow') assert.deepEqual([row.winner_up, row.winner_down], ['', '']);
        assert.ok(Number(row.connect_ns) > 0 && Number(row.fct_ns) >= Number(row.connect_ns));
        assert.ok(Number(row.delivered_ns) <= Number(row.fct_ns));
      }
    });
  }
}

test('a server that is ended says what flows it had', async (t) => {
  const server = await startServer(t);
  const flows = ['--bytes', '30KB', '--closed', '4', '--flows', '40', '--mode', 'flow'];
  const { code, stderr } = await bench('client', '--to', `127.0.0.1:${server.ready.port}`, ...flows);
  assert.equal(code, 0, stderr);
  server.kill('SIGTERM');
  const end = await server.closed;
  assert.equal(end.code, 0);
  assert.match(end.stderr, /^40 flows, .* 0 corrupt, 0 broken$/m);
});

test('modes are compared on the same flows', async (t) => {
  const name = await folder(t);
  const sizes = path.join(name, 'sizes.txt');
  await writeFile(sizes, '1 0\n20 1\n');
  const flows = async (mode) => {
    const { stdout } = await bench(
      'client',
      '--to',
      `127.0.0.1:${shared.ready.port}`,
      '--sizes',
      sizes,
      '--size-unit',
      'KB',
      '--arrivals',
      '500',
      '--flows',
      '50',
      '--mode',
      mode,
    );
    return parseRows(stdout)
      .map(({ flow, bytes, scheduled_ns }) => [Number(flow), bytes, scheduled_ns])
      .sort((a, b) => a[0] - b[0]);
  };
  const plain = await flows('net');
  assert.equal(plain.length, 50);
  assert.deepEqual(await flows('flow'), plain);
  const { stdout } = await bench(
    'plan',
    '--sizes',
    sizes,
    '--size-unit',
    'KB',
    '--arrivals',
    '500',
    '--flows',
    '50',
  );
  assert.deepEqual(
    parseRows(stdout).map(({ id, bytes, start_ns }) => [Number(id), bytes, start_ns]),
    plain,
  );
});

test('a plan ends when its reader has had enough', async (t) => {
  const flows = ['--bytes', '1KB', '--arrivals', '1000', '--flows', '1000000000'];
  const plan = spawn(process.execPath, [BENCH, 'plan', ...flows], { cwd: root });
  t.after(() => plan.kill('SIGKILL'));
  let stderr = '';
  plan.stderr.setEncoding('utf8').on('data', (text) => (stderr += text));
  const ended = once(plan, 'close');
  await once(plan.stdout, 'data');
  plan.stdout.destroy();
  assert.deepEqual(await ended, [1, null]);
  assert.match(stderr, /^repnet-bench: cannot write the rows: .*EPIPE.*\n$/);
});

test('kept-alive connections carry many flows and connect once', async () => {
  const { code, stdout } = await bench(
    'client',
    '--to',
    `127.0.0.1:${shared.ready.port}`,
    '--bytes',
    '2KB',
    '--closed',
    '2',
    '--flows',
    '30',
    '--keep-alive',
    '--mode',
    'flow',
  );
  assert.equal(code, 0);
  assert.equal(parseRows(stdout).filter(({ connect_ns }) => connect_ns !== '').length, 2);
});

test('flows over the threshold are not replicated', async () => {
  const { stdout } = await bench(
    'client',
    '--to',
    `127.0.0.1:${shared.ready.port}`,
    '--bytes',
    '200KB',
    '--closed',
    '1',
    '--flows',
    '3',
    '--mode',
    'flow',
    '--threshold',
    '100KB',
  );
  assert.deepEqual(
    parseRows(stdout).map(({ replicated, status }) => [replicated, status]),
    [
      ['0', 'ok'],
      ['0', 'ok'],
      ['0', 'ok'],
    ],
  );
});

for (const mode of ['syn', 'flow'])
  test(`mode ${mode}: a flow to a server that is known to be unmodified, or is yet to be known, is not called replicated`, async (t) => {
    const server = await startServer(t, '--plain');
    const { code, stdout, stderr } = await bench(
      ...['client', '--to', `127.0.0.1:${server.ready.port}`, '--bytes', '1KB'],
      ...['--closed', '1', '--flows', '2', '--mode', mode],
    );
    assert.equal(code, 0, stderr);
    // RepFlow's first one asks by its second connection.
    const rows = parseRows(stdout).slice(mode === 'flow' ? 1 : 0);
    for (const { replicated, winner_up, status } of rows)
      assert.deepEqual([replicated, winner_up, status], ['0', '', 'ok']);
  });

test('a library that is switched off is an error of a mode that needs it', async () => {
  const off = `data:text/javascript,import repnet from '${new URL('../../repnet/dist/index.js', import.meta.url)}'; repnet.disable();`;
  const args = ['client', '--to', '127.0.0.1:1', '--bytes', '1KB', '--closed', '1', '--flows', '1'];
  const { code, stdout, stderr } = await runNode('--import', [off, BENCH, ...args, '--mode', 'flow']);
  assert.deepEqual([code, stdout], [1, '']);
  assert.match(stderr, /^repnet-bench: --mode flow: the library is switched off/);
});

test('fan-in starts a group of one size together', async (t) => {
  const servers = await Promise.all([startServer(t), startServer(t)]);
  const to = servers.flatMap(({ ready }) => ['--to', `127.0.0.1:${ready.port}`]);
  const { stdout } = await bench(
    'client',
    ...to,
    '--bytes',
    '1KB',
    '--closed',
    '1',
    '--fan-in',
    '4',
    '--flows',
    '8',
    '--direction',
    'down',
  );
  const rows = parseRows(stdout);
  for (const group of ['0', '1']) {
    const members = rows.filter((row) => row.group === group);
    assert.deepEqual(members.map(({ to: server }) => server).sort(), ['0', '0', '1', '1']);
  }
});

test("a server's second port is the one asked for, and its ready line says which it is", async (t) => {
  const port = await freePort();
  const server = await startServer(t, '--replica-port', `${port}`);
  assert.equal(server.ready.replicaPort, port);
  const beside = await startServer(t);
  assert.equal(beside.ready.replicaPort, beside.ready.port + 1);
  const plain = await startServer(t, '--plain');
  assert.equal(plain.ready.replicaPort, null);
});

test('the summary states what was asked for and what came of it', async (t) => {
  const name = await folder(t);
  const file = path.join(name, 'summary.json');
  await bench(
    'client',
    '--to',
    `127.0.0.1:${shared.ready.port}`,
    '--bytes',
    '1KB',
    '--closed',
    '1',
    '--flows',
    '5',
    '--summary',
    file,
    '--out',
    path.join(name, 'rows.csv'),
  );
  const summary = JSON.parse(readFileSync(file, 'utf8'));
  assert.deepEqual(summary.totals, {
    flows: 5,
    ok: 5,
    failed: 0,
    bytes: 5000,
    replicated: 0,
    statuses: { ok: 5 },
  });
  assert.equal(summary.sizes.meanBytes, 1000);
  assert.match(summary.tool, /^repnet-bench \d/);
  assert.equal(parseRows(readFileSync(path.join(name, 'rows.csv'), 'utf8')).length, 5);
});

/**
 * A relay that does `change` to every chunk that the client sends, once the first 32 bytes (the
 * header) have passed.
 */
function meddler(port, change) {
  return net.createServer((near) => {
    const far = net.connect({ port, host: '127.0.0.1' });
    let passed = 0;
    near.on('data', (chunk) => {
      const after = passed + chunk.length > 1000 && passed <= 1000 ? change(chunk, 1000 - passed) : chunk;
      passed += chunk.length;
      far.write(after);
    });
    far.on('data', (chunk) => near.write(chunk));
    for (const [one, other] of [
      [near, far],
      [far, near],
    ])
      one.on('close', () => other.destroy()).on('error', () => {});
  });
}

const meddlings = {
  'a changed byte': (chunk, at) => {
    const changed = Buffer.from(chunk);
    changed[at] ^= 1;
    return changed;
  },
  'a doubled byte': (chunk, at) => Buffer.concat([chunk.subarray(0, at), chunk.subarray(at - 1)]),
};

/** One flow of 5 KB to that port. */
const oneFlow = (port, timeout) =>
  bench(
    ...['client', '--to', `127.0.0.1:${port}`, '--bytes', '5KB'],
    ...['--closed', '1', '--flows', '1', '--timeout', timeout],
  );

for (const [what, change] of Object.entries(meddlings)) {
  test(`${what} on the way is reported and fails the run`, async (t) => {
    const server = await startServer(t);
    const port = await listen(t, meddler(server.ready.port, change));
    const { code, stdout } = await oneFlow(port, '10min');
    assert.equal(code, 1);
    assert.notEqual(parseRows(stdout)[0].status, 'ok');
    server.kill('SIGTERM');
    assert.notEqual(
      (await server.closed).stderr
        .match(/(\d+) corrupt, (\d+) broken/)
        .slice(1)
        .join(),
      '0,0',
    );
  });
}

test('a lost byte ends in a timeout, not in silence', async (t) => {
  const server = await startServer(t);
  const port = await listen(
    t,
    meddler(server.ready.port, (chunk, at) => Buffer.concat([chunk.subarray(0, at), chunk.subarray(at + 1)])),
  );
  const { code, stdout } = await oneFlow(port, '200ms');
  assert.equal(code, 1);
  assert.equal(parseRows(stdout)[0].status, 'ERR_BENCH_TIMEOUT');
});

test('an open-loop flow over --max-in-flight is reported, not left out', async (t) => {
  const port = await listen(
    t,
    net.createServer(() => {}),
  ); // accepts and never answers
  const { stdout } = await bench(
    'client',
    '--to',
    `127.0.0.1:${port}`,
    '--bytes',
    '1KB',
    '--arrivals',
    '1000000', // all of them are begun before any can time out
    '--flows',
    '10',
    '--max-in-flight',
    '4',
    '--timeout',
    '500ms',
  );
  const statuses = parseRows(stdout)
    .map(({ status }) => status)
    .sort();
  assert.deepEqual(
    statuses,
    [...Array(6).fill('ERR_BENCH_OVERLOAD'), ...Array(4).fill('ERR_BENCH_TIMEOUT')].sort(),
  );
});

test('a server that is not there is an error of each flow', async () => {
  const { code, stdout } = await bench(
    'client',
    '--to',
    '127.0.0.1:1',
    '--bytes',
    '1KB',
    '--closed',
    '1',
    '--flows',
    '2',
  );
  assert.equal(code, 1);
  assert.deepEqual(
    parseRows(stdout).map(({ status }) => status),
    ['ECONNREFUSED', 'ECONNREFUSED'],
  );
});

test('a server that speaks something else is told apart', async (t) => {
  const port = await listen(
    t,
    net.createServer((socket) =>
      socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n').on('error', () => {}),
    ),
  );
  const { stdout } = await bench(
    'client',
    '--to',
    `127.0.0.1:${port}`,
    '--bytes',
    '1KB',
    '--closed',
    '1',
    '--flows',
    '1',
  );
  assert.equal(parseRows(stdout)[0].status, 'ERR_BENCH_WIRE');
});

test('SIGTERM ends a client after the flows in flight, with their rows', async (t) => {
  const file = path.join(await folder(t), 'summary.json');
  const args = [
    'client',
    '--to',
    `127.0.0.1:${shared.ready.port}`,
    '--bytes',
    '1KB',
    '--closed',
    '2',
    '--duration',
    '60s',
    '--summary',
    file,
  ];
  const client = spawn(process.execPath, [BENCH, ...args], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  let rows = '';
  client.stdout.setEncoding('utf8').on('data', (text) => {
    rows += text;
    if (rows.split('\n').length > 5 && !client.killed) client.kill('SIGTERM');
  });
  const [code] = await once(client, 'close');
  assert.equal(code, 0);
  const { totals } = JSON.parse(readFileSync(file, 'utf8'));
  assert.equal(parseRows(rows).length, totals.ok);
});

test('a command line that is refused ends the program with code 2', async () => {
  const { code, stderr } = await bench('nonsense');
  assert.equal(code, 2, stderr);
  assert.match(stderr, /^repnet-bench: .*\[ERR_USAGE\]\n$/);
});

const REFUSED = [
  ['an unknown option', ['client', '--nonsense'], 'ERR_USAGE'],
  ['no workload', ['client', '--to', 'a:1', '--closed', '1'], 'ERR_USAGE'],
  [
    'two workloads',
    ['client', '--to', 'a:1', '--closed', '1', '--bytes', '1KB', '--trace', 'x'],
    'ERR_USAGE',
  ],
  ['a size without unit', ['client', '--to', 'a:1', '--closed', '1', '--bytes', '1000'], 'ERR_QUANTITY_UNIT'],
  ['an unknown unit', ['client', '--to', 'a:1', '--closed', '1', '--bytes', '10kB'], 'ERR_QUANTITY_UNIT'],
  [
    'a load over 1',
    ['client', '--to', 'a:1', '--load', '1.5', '--rate', '1Gbps', '--bytes', '1KB'],
    'ERR_USAGE',
  ],
  ['a load without rate', ['client', '--to', 'a:1', '--load', '0.5', '--bytes', '1KB'], 'ERR_USAGE'],
  [
    'an unknown mode',
    ['client', '--to', 'a:1', '--closed', '1', '--bytes', '1KB', '--mode', 'fast'],
    'ERR_USAGE',
  ],
  ['a bad address', ['client', '--to', 'somewhere', '--closed', '1', '--bytes', '1KB'], 'ERR_ENDPOINT'],
  [
    'one port for both connections',
    ['client', '--to', 'a:7', '--closed', '1', '--bytes', '1KB', '--mode', 'flow', '--replica-port', '7'],
    'ERR_USAGE',
  ],
  [
    'one port for both connections of a server',
    ['server', '--listen', '127.0.0.1:7', '--replica-port', '7'],
    'ERR_USAGE',
  ],
  [
    'a timeout of 0',
    ['client', '--to', 'a:1', '--closed', '1', '--bytes', '1KB', '--timeout', '0s'],
    'ERR_QUANTITY',
  ],
  [
    'a duration longer than timers go',
    ['client', '--to', 'a:1', '--closed', '1', '--bytes', '1KB', '--duration', '50000min'],
    'ERR_QUANTITY',
  ],
  ['no server', ['client', '--closed', '1', '--bytes', '1KB'], 'ERR_USAGE'],
  ['a plan without end', ['plan', '--closed', '1', '--bytes', '1KB', '--duration', '1s'], 'ERR_USAGE'],
  [
    'fewer flows than a group',
    ['client', '--to', 'a:1', '--closed', '1', '--bytes', '1KB', '--fan-in', '5', '--flows', '2'],
    'ERR_USAGE',
  ],
];

let refused;
before(async () => {
  refused = await refusals(
    BENCH,
    REFUSED.map(([, args]) => args),
  );
});

for (const [n, [what, , code]] of REFUSED.entries())
  test(`a command line with ${what} is refused in one line, exit code 2`, () => {
    assert.equal(refused[n].code, 2, refused[n].stderr);
    assert.match(refused[n].stderr, new RegExp(`^repnet-bench: .*\\[${code}\\]\\n$`));
  });

test('every option is in --help', async () => {
  for (const command of ['server', 'client']) {
    const { code, stdout } = await bench(command, '--help');
    assert.equal(code, 0);
    assert.match(stdout, /--summary FILE/);
  }
});
