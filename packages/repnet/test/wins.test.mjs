/** Which copy won which bytes, by direction. */
import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { forgetPeers } from '../dist/client/peers.js';
import { Flow } from '../dist/flow/flow.js';
import repnet from '../dist/index.js';
import { HELLO_BYTES } from '../dist/wire.js';
import { memoryLeg } from './lib/memory-leg.mjs';
import { startRelay } from './lib/relay.mjs';
import { data, defaults, echo, echoServer, hello, ownPort, raw, until } from './lib/support.mjs';

beforeEach(() => {
  forgetPeers();
  repnet.resetStats();
  Object.assign(defaults, { waitTimeout: 1_000, pairTimeout: 1_000 });
});

function wins() {
  const {
    requestBytesWonByPrimary,
    requestBytesWonByReplica,
    replyBytesWonByPrimary,
    replyBytesWonByReplica,
  } = repnet.stats();
  return {
    request: [requestBytesWonByPrimary, requestBytesWonByReplica],
    reply: [replyBytesWonByPrimary, replyBytesWonByReplica],
  };
}

test('the faster copy of the request need not be that of the reply: each direction has its winner', async (t) => {
  const { port } = await echoServer(t);
  const late = { kind: 'pause', ms: 100 };
  const relay = await startRelay({
    targetPort: port,
    faultsFor: (_, copy) =>
      copy === 1
        ? [{ ...late, copy, direction: 'up', at: HELLO_BYTES }]
        : [{ ...late, copy, direction: 'down', at: 0 }],
  });
  t.after(() => relay.close());
  const socket = repnet.connect({ host: relay.host, port: relay.port, replicate: 'flow', peer: 'repnet' });
  t.after(() => socket.destroy());
  assert.equal(await echo(socket, 'twelve bytes'), 'twelve bytes');
  assert.deepEqual(wins(), { request: [12, 0], reply: [0, 12] });
  await until(() => repnet.stats().bytesDuplicate === 24, 'the other copies have come');
  assert.deepEqual(wins(), { request: [12, 0], reply: [0, 12] });
});

test('bytes that came before the second connection are won by the first', async (t) => {
  const { port, sockets } = await echoServer(t);
  const localPort = ownPort();
  const first = await raw(t, port, { localPort });
  first.socket.write('request');
  await until(() => sockets[0]?.bytesRead === 7);
  assert.deepEqual(wins().request, [0, 0], 'there is no race yet');
  const second = await raw(t, port + 1, { localPort });
  second.socket.write(Buffer.concat([hello(second, port), data(0, 'request'), data(7, ' and more')]));
  await until(() => sockets[0].bytesRead === 16);
  assert.deepEqual(wins().request, [7, 9]);
});

test('what came early on the second copy is won by that when the first fills the hole', () => {
  let text = '';
  const outer = {
    deliver(chunk) {
      text += chunk;
      return true;
    },
    destroy() {},
    touch() {},
  };
  const flow = new Flow(outer, { threshold: 1_000, lull: 50 });
  flow.receiver.paused = false;
  const legs = [0, 1].map((copy) => memoryLeg(copy));
  for (const leg of legs) flow.open(leg);
  flow.legData(legs[1], data(3, 'de'));
  flow.legData(legs[0], Buffer.from('abc'));
  assert.equal(text, 'abcde');
  assert.deepEqual(wins(), { request: [0, 0], reply: [3, 2] });
});
