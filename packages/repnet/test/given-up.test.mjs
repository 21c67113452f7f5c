/**
 * A client that has given its second connection up before anything was on it, because no answer had come: the server may have begun a
 * flow by it, and serves the first connection all the same, however late that comes.
 */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';
import { ANSWER_BYTES, decodeAnswer, HelloFlag, Kind, RecordParser, Refusal } from '../dist/wire.js';
import { data, defaults, echoServer, hello, ownPort, raw, until } from './lib/support.mjs';

const WAIT = 400;
before(() => {
  Object.assign(defaults, { waitTimeout: WAIT });
});

const TOKEN = HelloFlag.early | HelloFlag.token;
let flows = 0;

/** Says hello on a second connection and breaks it off, until the server lets a flow begin by it; what names that flow. */
async function givenUp(t, port, flags) {
  for (;;) {
    const named = { localPort: ownPort(), token: Buffer.alloc(16, ++flows) };
    const second = await raw(t, port + 1, { localPort: named.localPort });
    second.socket.write(hello(second, port, { flags, token: named.token }));
    await until(() => second.bytes.length >= ANSWER_BYTES, 'an answer');
    const { refusal } = decodeAnswer(second.bytes);
    second.socket.resetAndDestroy();
    if (refusal === Refusal.none) return named;
  }
}

// While the flow waits for its first connection, while such a one is still taken for its, and after that.
for (const later of [0.25, 1.2, 1.6, 2.5]) {
  const when = `${later} of the wait later`;
  test(`pairing by address, the first comes ${when}`, async (t) => {
    const { port } = await echoServer(t);
    const { localPort } = await givenUp(t, port, HelloFlag.early);
    await wait(later * WAIT);
    const first = await raw(t, port, { localPort });
    first.socket.write('request');
    await until(() => first.bytes.toString() === 'request' || first.closed, 'the echo');
    assert.deepEqual([first.bytes.toString(), first.error], ['request', undefined]);
  });

  test(`pairing by token, the first comes ${when}`, async (t) => {
    const { port } = await echoServer(t, { pairing: 'token' });
    const { token } = await givenUp(t, port, TOKEN);
    await wait(later * WAIT);
    const first = await raw(t, port);
    const flags = TOKEN | HelloFlag.origin;
    first.socket.write(
      Buffer.concat([hello(first, port, { kind: Kind.primary, flags, token }), data(0, 'request')]),
    );
    const echoed = () => {
      let text = '';
      const records = first.bytes.subarray(ANSWER_BYTES);
      new RecordParser().feed(Buffer.from(records), {
        onData: (_, bytes) => (text += bytes),
        onControl() {},
      });
      return text;
    };
    await until(() => echoed() === 'request' || first.closed, 'the echo');
    assert.deepEqual([echoed(), first.error], ['request', undefined]);
  });
}
