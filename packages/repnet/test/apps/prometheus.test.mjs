import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import promClient from 'prom-client';
import repnet from 'repnet';
import { formatMetrics, libraryMetrics, registerMetrics } from 'repnet/prometheus';
import { listen } from './support/servers.mjs';

/** One flow each way carried by `replicate`, so that there is something to count. */
async function oneFlow(t, replicate) {
  const port = await listen(
    t,
    repnet.createServer((socket) => socket.pipe(socket)),
  );
  const socket = repnet.connect({ port, host: '127.0.0.1', replicate });
  socket.end('hello').resume();
  await once(socket, 'close');
}

test('every counter of stats() is a metric exactly once', () => {
  const text = formatMetrics(libraryMetrics());
  const samples = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  // Of the trial three sums of each group, in place of its histograms.
  const counters = Object.keys(repnet.stats()).filter((name) => name !== 'trial');
  assert.equal(samples.length, counters.length + 6);
  assert.equal(new Set(samples.map((line) => line.split(' ')[0])).size, samples.length);
});

test('a registry that is scraped shows the counters of that moment', async (t) => {
  const registry = new promClient.Registry();
  registerMetrics(promClient, registry);
  const flows = async () => {
    const metric = await registry.getSingleMetric('repnet_flows_total').get();
    return metric.values.find(({ labels }) => labels.mode === 'plain').value;
  };
  const before = await flows();
  assert.equal(before, repnet.stats().flowsPlain);
  await oneFlow(t, false);
  assert.equal(await flows(), repnet.stats().flowsPlain);
  assert.equal(await flows(), before + 1);
});

test('the registry and the text without it say the same', async () => {
  const registry = new promClient.Registry();
  registerMetrics(promClient, registry);
  const parse = (text) =>
    text
      .split('\n')
      .filter((line) => line !== '')
      .sort();
  assert.deepEqual(parse(formatMetrics(libraryMetrics())), parse(await registry.metrics()));
});

test('registering twice with one registry is refused', () => {
  const registry = new promClient.Registry();
  registerMetrics(promClient, registry);
  assert.throws(() => registerMetrics(promClient, registry), /already been registered/);
});

test('labels and help are escaped', () => {
  const metric = {
    name: 'x',
    type: 'gauge',
    help: 'a\nb\\',
    samples: [{ labels: { l: 'q"\\\n' }, value: 1 }],
  };
  assert.equal(formatMetrics([metric]), '# HELP x a\\nb\\\\\n# TYPE x gauge\nx{l="q\\"\\\\\\n"} 1\n');
});
