import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AbstractConnector, Redis } from 'ioredis';
import repnet from 'repnet';
import { runNode } from './support/process.mjs';
import { skipRedis, startRedis } from './support/redis.mjs';
import { MODES } from './support/servers.mjs';

/** An ioredis connector over repnet.createConnection with fixed options. */
function connectorFor(replication) {
  return class extends AbstractConnector {
    constructor(options) {
      super(options.disconnectTimeout);
      this.options = options;
    }

    async connect() {
      this.connecting = true;
      this.stream = repnet.createConnection({
        host: this.options.host,
        port: this.options.port,
        ...replication,
      });
      this.stream.once('error', (error) => (this.firstError = error));
      return this.stream;
    }
  };
}

function client(t, port, replication, options = {}) {
  const redis = new Redis({ host: '127.0.0.1', port, Connector: connectorFor(replication), ...options });
  t.after(() => redis.disconnect());
  return redis;
}

for (const replicate of MODES) {
  test(`replicate ${replicate}: commands, pipelines and large values against redis-server`, {
    skip: skipRedis,
  }, async (t) => {
    const redis = client(t, await startRedis(t), { replicate });
    assert.equal(await redis.set('key', 'value'), 'OK');
    assert.equal(await redis.get('key'), 'value');
    const large = 'v'.repeat(1_000_000);
    await redis.set('large', large);
    assert.equal(await redis.get('large'), large);
    const pipeline = redis.pipeline();
    for (let i = 0; i < 1000; i++) pipeline.incr('counter');
    const results = await pipeline.exec();
    assert.deepEqual(results.at(-1), [null, 1000]); // exactly once, each
  });

  test(`replicate ${replicate}: published messages arrive once and in order`, {
    skip: skipRedis,
  }, async (t) => {
    const port = await startRedis(t);
    const subscriber = client(t, port, { replicate });
    const publisher = client(t, port, { replicate });
    const received = [];
    await subscriber.subscribe('channel');
    const all = new Promise((resolve) =>
      subscriber.on('message', (_channel, text) => received.push(text) === 500 && resolve()),
    );
    for (let i = 0; i < 500; i++) publisher.publish('channel', String(i));
    await all;
    assert.deepEqual(
      received,
      Array.from({ length: 500 }, (_, i) => String(i)),
    );
  });

  test(`replicate ${replicate}: redis-server keeps one connection per client`, {
    skip: skipRedis,
  }, async (t) => {
    const port = await startRedis(t);
    const clients = Array.from({ length: 20 }, () => client(t, port, { replicate }));
    await Promise.all(clients.map((redis) => redis.ping()));
    let connected;
    do {
      // The losing connection of RepSYN is reset at once; the server may learn of it a moment later.
      connected = Number(/connected_clients:(\d+)/.exec(await clients[0].info('clients'))[1]);
    } while (connected > 20);
    assert.equal(connected, 20);
  });
}

test('a server that goes away is an error and ioredis reconnects', { skip: skipRedis }, async (t) => {
  const redis = client(t, await startRedis(t), { replicate: 'syn' });
  redis.on('error', () => {});
  await redis.set('key', 'value');
  await redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'no').catch(() => {});
  assert.equal(await redis.get('key'), 'value');
});

test('the example runs', { skip: skipRedis }, async (t) => {
  const port = await startRedis(t);
  const { code, stdout, stderr } = await runNode('examples/redis.js', [`redis://127.0.0.1:${port}`]);
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^kept by the faster of two connections$/m);
  const [, stats] = /^(\{.*\})$/m.exec(stdout);
  assert.equal(JSON.parse(stats).flowsSyn, 1);
});
