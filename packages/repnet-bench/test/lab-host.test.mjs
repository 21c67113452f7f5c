import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../repnet/test/apps/support/servers.mjs';

const MAIN = fileURLToPath(new URL('../dist/main.js', import.meta.url));
const PERIOD = Buffer.from(Array.from({ length: 251 }, (_, at) => (at * at + 7 * at) % 256));
const SIZES = [3, 900, 5_000, 400_000];

/** A host that is sent what it sends; the two never meet but in its kernel. */
async function startHost(t, mode, missing = []) {
  // Its second port may be somebody else's.
  for (let attempt = 0; attempt < 5; attempt++) {
    const host = spawn(process.execPath, [MAIN, 'lab'], { stdio: ['pipe', 'pipe', 'inherit'] });
    t.after(async () => {
      host.stdin.end();
      if (host.exitCode === null) await once(host, 'exit');
    });
    const lines = createInterface({ input: host.stdout })[Symbol.asyncIterator]();
    const address = '127.0.0.1';
    const all = SIZES.map((bytes, at) => {
      return { index: 10 + at, peer: address, bytes, port: 0, place: 20 + 31 * at };
    });
    const expected = all.filter(({ bytes }) => !missing.includes(bytes));
    const port = await freePort();
    const payload = PERIOD.toString('hex');
    const task = { address, port, mode, threshold: 10_000, copyDelay: 0, payload, flows: all, expected };
    host.stdin.write(`${JSON.stringify(task)}\n`);
    const ready = JSON.parse((await lines.next()).value);
    if (ready.failed === undefined) return { host, hear: async () => (await lines.next()).value };
    assert.match(ready.failed, /EADDRINUSE/);
  }
  throw new Error('no two ports in a row are free');
}

for (const mode of ['net', 'syn', 'flow']) {
  test(`mode ${mode}: a host tells which flow is over, first where it ends and then where it began`, async (t) => {
    const { host, hear } = await startHost(t, mode);
    const began = process.hrtime.bigint();
    host.stdin.write('0 0\n1 0\n2 0\n3 0\n');
    const told = new Map();
    for (let at = 0; at < 2 * SIZES.length; ) {
      const [letter, flow, ns] = (await hear()).split(' ');
      if (letter === 'l') continue;
      at++;
      assert.ok(BigInt(ns) > began && BigInt(ns) <= process.hrtime.bigint());
      told.set(Number(flow), { ...told.get(Number(flow)), [letter]: Number(ns) });
    }
    assert.deepEqual([...told.keys()].sort(), [10, 11, 12, 13]);
    host.stdin.write('report\n');
    const { sent, got, wrong } = JSON.parse(await hear());
    assert.deepEqual(wrong, []);
    for (const { index, opened_ns, established_ns, acknowledged_ns } of sent) {
      const { r, a } = told.get(index);
      assert.ok(opened_ns < established_ns && r < a);
      assert.equal(acknowledged_ns, a);
    }
    const complete = new Map(got.map(({ index, complete_ns }) => [index, complete_ns]));
    assert.deepEqual(
      [...told].map(([index, { r }]) => r === complete.get(index)),
      [true, true, true, true],
    );
  });
}

for (const mode of ['net', 'syn', 'flow']) {
  test(`mode ${mode}: a host tells which connection brings a long flow, and of no other`, async (t) => {
    const { host, hear } = await startHost(t, mode);
    host.stdin.write('2 0\n0 0\n1 0\n3 0\n');
    const long = [];
    for (let over = 0; over < SIZES.length; ) {
      const [letter, address, port] = (await hear()).split(' ');
      if (letter === 'l') long.push([address, Number(port) > 0]);
      if (letter === 'a') over++;
    }
    assert.deepEqual(long, [['127.0.0.1', true]]);
  });
}

test('a host that is sent what no flow is known for says so', async (t) => {
  const { host, hear } = await startHost(t, 'net', [900]);
  host.stdin.write('1 0\n');
  assert.equal(await hear(), 'w');
  host.stdin.write('report\n');
  let line = await hear();
  while (!line.startsWith('{')) line = await hear();
  assert.match(JSON.parse(line).wrong[0], /900 bytes from 127\.0\.0\.1:\d+ that no flow is known for/);
});

test('a flow that is told ahead begins when it is due', async (t) => {
  const { host, hear } = await startHost(t, 'net');
  const due = Number(process.hrtime.bigint()) + 20_000_000;
  host.stdin.write(`1 ${due}\n`);
  while (!(await hear()).startsWith('a'));
  host.stdin.write('report\n');
  const { sent } = JSON.parse(await hear());
  assert.ok(sent[0].opened_ns >= due);
});
