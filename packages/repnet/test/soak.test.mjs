/**
 * The short form of `npm run soak`: a cluster, source NAT and a path that falls silent, with flows of sizes around the threshold,
 * by RepFlow and RepSYN; none is lost. And every mode through a relay that breaks connections, with ends of either version of the wire
 * format.
 */
import assert from 'node:assert/strict';
import net from 'node:net';
import { test } from 'node:test';
import { request } from './lib/exchange.mjs';
import { skipNft } from './lib/nft.mjs';
import { until } from './lib/support.mjs';
import { FABRICS } from './soak/fabrics.mjs';
import { soak, throughRelay } from './soak/soak.mjs';

const skip = skipNft();

for (const fabric of Object.keys(FABRICS))
  test(`${fabric}: 300 flows, none lost`, { skip }, async () => {
    const { flows, lost, wrong, flowsFlow, copiesFailed } = await soak(fabric, 300);
    assert.deepEqual([flows, lost, wrong], [300, 0, []]);
    // The test meets what it is about.
    assert.ok(flowsFlow > 200 && copiesFailed > 20, `${flowsFlow} flows, ${copiesFailed} failures`);
  });

const FLOWS = 6_000 / Number(process.env.REPNET_FAULT_SHARE ?? 1);

test(`${FLOWS} flows through a relay that breaks them, in every mode: none lost, doubled or mixed`, async () => {
  const { flows, rooms, wrong } = await throughRelay(
    process.execPath,
    FLOWS,
    Number.POSITIVE_INFINITY,
    20261122,
  );
  assert.deepEqual([flows, wrong], [FLOWS, []]);
  for (const { mode, peer, complete, failed } of rooms)
    assert.ok(complete > 0 && failed > 0, `${mode}, ${peer}: ${complete} complete, ${failed} failed`);
});

test('a flow that is slow is not called silent before something of it has fallen silent', async () => {
  const accepted = [];
  const late = net.createServer({ allowHalfOpen: true }, (socket) => {
    accepted.push(socket.on('error', () => {}).resume());
  });
  await new Promise((resolve) => late.listen(0, '127.0.0.1', resolve));
  const { port } = late.address();
  const hung = async (counts) => {
    const connect = () => net.connect(port, '127.0.0.1');
    return (await request(connect, { requestLength: 10, replyLength: 0, timeout: 50, counts })).hung;
  };
  const slow = hung(() => false);
  // As many ticks as it takes are over for both by then.
  assert.equal(await hung(() => true), true);
  await until(() => accepted.length === 2, 'the server has both');
  for (const socket of accepted) socket.end();
  assert.equal(await slow, false);
  late.close();
});
