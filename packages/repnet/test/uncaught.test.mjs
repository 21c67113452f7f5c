/** What the application throws at the bytes that it is given: uncaught, as with net, and nobody else's loss. */
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import repnet from '../dist/index.js';
import { controlRecord, Record } from '../dist/wire.js';
import { data, defaults, hello, ownPort, raw, until } from './lib/support.mjs';

beforeEach(() => {
  Object.assign(defaults, { waitTimeout: 60_000, pairTimeout: 60_000 });
});

/** What is thrown and not caught from now on until the test is over. */
function uncaught(t) {
  const thrown = [];
  process.setUncaughtExceptionCaptureCallback(({ message }) => thrown.push(message));
  t.after(() => process.setUncaughtExceptionCaptureCallback(null));
  return thrown;
}

/** A flow with both connections, whose application at the server throws what it is given, unless that is 'three'. */
async function thrower(t) {
  const heard = [];
  const server = repnet.createServer((socket) => {
    t.after(() => socket.destroy());
    for (const event of ['error', 'end', 'close']) socket.on(event, () => heard.push(event));
    socket.on('data', (chunk) => {
      heard.push(`${chunk}`);
      if (`${chunk}` !== 'three') throw new Error(`${chunk}`);
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  const { port } = server.address();
  const localPort = ownPort();
  const first = await raw(t, port, { localPort });
  const paired = repnet.stats().flowsPaired;
  const second = await raw(t, port + 1, { localPort });
  second.socket.write(hello(second, port));
  await until(() => repnet.stats().flowsPaired > paired, 'the flow has both connections');
  return { first, second, heard };
}

for (const copies of [
  ['second', 'first'],
  ['first', 'second'],
])
  test(`thrown at bytes of the ${copies.join(' and then of the ')} connection`, async (t) => {
    const flow = await thrower(t);
    const thrown = uncaught(t);
    const says = { first: '', second: '' };
    /** On the first connection all that was said before comes first, on the second it need not. */
    const say = (copy, offset, text) => {
      const sent = says[copy].length;
      says[copy] = 'onetwothree'.slice(0, offset + text.length);
      flow[copy].socket.write(copy === 'first' ? says[copy].slice(sent) : data(offset, text));
    };
    say(copies[0], 0, 'one');
    await until(() => flow.heard.length === 1);
    say(copies[1], 3, 'two');
    await until(() => flow.heard.length === 2);
    say(copies[0], 6, 'three');
    if (copies[0] === 'first') say(copies[1], 6, 'three');
    await until(() => flow.heard.length >= 3);
    assert.deepEqual(flow.heard, ['one', 'two', 'three']);
    assert.deepEqual(thrown, ['one', 'two']);
    assert.deepEqual([flow.first.closed, flow.second.closed], [false, false]);
  });

test('thrown at the last bytes: the end that was declared comes all the same', async (t) => {
  const { first, second, heard } = await thrower(t);
  const thrown = uncaught(t);
  second.socket.write(controlRecord(Record.end, 3));
  first.socket.write('one');
  await until(() => heard.includes('end'));
  assert.deepEqual([heard.slice(0, 2), thrown], [['one', 'end'], ['one']]);
});
