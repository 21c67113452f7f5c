/** `listen(0)` finds two free ports side by side. */
import assert from 'node:assert/strict';
import net from 'node:net';
import { test } from 'node:test';
import repnet from '../dist/index.js';

const HOST = '127.0.0.1';

/** Resolves to the error of `server.listen(...where)`, or to undefined when it listens. */
const outcome = (server, ...where) =>
  new Promise((resolve) => server.once('error', resolve).listen(...where, () => resolve(undefined)));

/** Takes the successor of each of the next `count` ports that the system chooses; the ports chosen so far. */
function takeSuccessors(t, count) {
  const create = net._createServerHandle;
  const chosen = [];
  const takers = [];
  t.mock.method(net, '_createServerHandle', (host, port, ...rest) => {
    const handle = create(host, port, ...rest);
    if (port !== 0 || typeof handle === 'number') return handle;
    const bound = {};
    handle.getsockname(bound);
    chosen.push(bound.port);
    if (chosen.length <= count) {
      const taker = create(host, bound.port + 1, ...rest);
      // Otherwise somebody else has it, which is as well.
      if (taker.listen(1) === 0) takers.push(taker);
      else taker.close();
    }
    return handle;
  });
  t.after(() => {
    for (const taker of takers) taker.close();
  });
  return chosen;
}

for (const [taken, where] of [
  [1, 'the next that the system chooses'],
  [15, 'the last that it is asked for'],
])
  test(`with the successors of ${taken} ports taken, it is ${where}`, async (t) => {
    const chosen = takeSuccessors(t, taken);
    const server = repnet.createServer({ replicate: 'flow' });
    t.after(() => server.close());
    assert.equal(await outcome(server, 0, HOST), undefined);
    const { port } = server.address();
    assert.equal(server.replicaAddress().port, port + 1);
    assert.ok(!chosen.slice(0, taken).includes(port));
  });

test('with the successors of all ports taken that the system offers, it is below its range', async (t) => {
  const chosen = takeSuccessors(t, Number.POSITIVE_INFINITY);
  const server = repnet.createServer({ replicate: 'flow' });
  t.after(() => server.close());
  assert.equal(await outcome(server, 0, HOST), undefined);
  const { port } = server.address();
  assert.equal(chosen.length, 16);
  assert.ok(port >= 10_000 && port < 32_000, `${port}`);
  assert.equal(server.replicaAddress().port, port + 1);
});

test('an explicit replicaPort is kept, or its being taken is an error', async (t) => {
  const holder = net.createServer();
  assert.equal(await outcome(holder, 0, HOST), undefined);
  t.after(() => holder.close());
  const server = repnet.createServer({ replicate: 'flow', replicaPort: holder.address().port });
  t.after(() => server.close());
  assert.equal((await outcome(server, 0, HOST))?.code, 'EADDRINUSE');
  assert.equal(server.listening, false);
});
