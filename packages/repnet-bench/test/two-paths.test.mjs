/**
 * Two real paths between two hosts, one kept busy by long flows, one idle. Where the first port
 * leads over the busy link and the second over the idle one, the winner is known; where each
 * connection draws its link (ECMP), two draws are better than one (RepNet, section II-B).
 */
import assert from 'node:assert/strict';
import { availableParallelism, loadavg } from 'node:os';
import { test } from 'node:test';
import { SERVER, skipNamespaces, TwoPaths } from '../../repnet/test/apps/support/namespaces.mjs';
import { tooBusy } from '../../repnet/test/lib/skips.mjs';
import { until } from '../../repnet/test/lib/support.mjs';

const BENCH = '../repnet-bench/dist/main.js';
const PORT = 7000;
const BACKGROUND_PORT = 9000;
const FLOW_BYTES = 20_000;
const skip = skipNamespaces();

/**
 * The two hosts, a server on PORT, and two long flows that keep link a's queue full towards the
 * server.
 */
async function busyPaths(t, serverOptions = []) {
  const paths = new TwoPaths(t, { rate: '50mbit', queueBytes: 150_000 });
  paths.pin(BACKGROUND_PORT, 'a');
  await paths.start(t, 'server', BENCH, ['server', '--listen', `${SERVER}:${PORT}`, ...serverOptions]);
  await paths.start(t, 'server', BENCH, ['server', '--listen', `${SERVER}:${BACKGROUND_PORT}`, '--plain']);
  await paths.start(t, 'client', BENCH, [
    'client',
    '--to',
    `${SERVER}:${BACKGROUND_PORT}`,
    '--bytes',
    '10GB',
    '--closed',
    '2',
    '--flows',
    '2',
    '--timeout',
    '60min',
  ]);
  const before = paths.sent('a');
  await until(
    () => paths.sent('a') - before > 2_000_000,
    'the link is loaded',
    () => paths.sent('a') - before,
  );
  return paths;
}

async function flows(paths, mode, count, clientOptions = []) {
  const { code, stdout, stderr } = await paths.run('client', BENCH, [
    'client',
    '--to',
    `${SERVER}:${PORT}`,
    '--mode',
    mode,
    '--bytes',
    `${FLOW_BYTES}B`,
    '--closed',
    '2',
    '--flows',
    String(count),
    '--timeout',
    '10min',
    ...clientOptions,
  ]);
  assert.equal(code, 0, stderr);
  const [header, ...lines] = stdout
    .trimEnd()
    .split('\n')
    .map((line) => line.split(','));
  return lines.map((cells) => Object.fromEntries(header.map((name, index) => [name, cells[index]])));
}

const percentile = (rows, share) => {
  const times = rows.map(({ fct_ns }) => Number(fct_ns) / 1e6).sort((a, b) => a - b);
  return times[Math.min(times.length - 1, Math.floor(share * times.length))];
};

function describe(t, mode, rows) {
  const values = [0.5, 0.9, 0.99].map((share) => percentile(rows, share).toFixed(2));
  t.diagnostic(
    `${mode.padEnd(5)} ${String(rows.length).padStart(4)} flows of 20 KB: p50 ${values[0]} ms, p90 ${values[1]} ms, p99 ${values[2]} ms`,
  );
}

const MOST_TRIES = 3;
/**
 * So many processes wait for each processor that a link which is idle need not be the quicker one.
 */
const isBusy = () => loadavg()[0] > 1.5 * availableParallelism();

/**
 * Fails unless `measure` resolves to undefined; a string says what did not hold. Tried again on a
 * busy machine, and not judged if it stays busy.
 */
async function judge(t, measure) {
  for (let tries = 1; ; tries++) {
    const failure = await measure();
    if (failure === undefined) return;
    assert.ok(isBusy(), failure);
    if (tries === MOST_TRIES) return t.skip(tooBusy('processes wait for the processors', tries));
  }
}

/**
 * Fails unless nine in ten of the flows that `send` resolves to were brought by `copy`, the one on
 * the idle link.
 */
async function assertWins(t, copy, count, send) {
  await judge(t, async () => {
    const rows = await send();
    describe(t, 'flow', rows);
    const won = rows.filter(({ winner_up }) => winner_up === copy).length;
    t.diagnostic(`the copy on the idle link brought ${won} of ${count} flows first`);
    return won > 0.9 * count ? undefined : `${won} of ${count} flows`;
  });
}

test('with the first port on the busy link, RepFlow is as fast as the idle one', {
  skip,
}, async (t) => {
  const paths = await busyPaths(t);
  paths.pin(PORT, 'a');
  paths.pin(PORT + 1, 'b');
  const count = 100;
  const payload = count * FLOW_BYTES;

  let sentBefore = paths.sent('b');
  describe(t, 'net', await flows(paths, 'net', count));
  assert.ok(paths.sent('b') - sentBefore < 10_000, 'plain flows have no business on the idle link');

  await assertWins(t, 'replica', count, async () => {
    sentBefore = paths.sent('b');
    const replicated = await flows(paths, 'flow', count);
    assert.ok(paths.sent('b') - sentBefore > 0.9 * payload, 'a copy of the payload goes over the idle link');
    return replicated;
  });
});

test('with the second port on the busy link, the copy there does no harm', {
  skip,
}, async (t) => {
  const paths = await busyPaths(t);
  paths.pin(PORT, 'b');
  paths.pin(PORT + 1, 'a');
  const count = 100;
  describe(t, 'net', await flows(paths, 'net', count));
  await assertWins(t, 'primary', count, () => flows(paths, 'flow', count));
});

for (const [what, serverOptions, clientOptions, modes] of [
  ['a repnet server', [], [], ['net', 'syn', 'flow']],
  // Told, since all flows of the second in which a client makes certain of it are plain.
  ['an unmodified server', ['--plain'], ['--peer', 'plain'], ['net', 'syn']],
]) {
  test(`with ECMP by five-tuple to ${what}, two draws meet the busy link less often than one`, {
    skip,
  }, async (t) => {
    const paths = await busyPaths(t, serverOptions);
    const count = 200;
    await judge(t, async () => {
      const payload = {};
      for (const mode of modes) {
        const before = paths.sent('b');
        describe(t, mode, await flows(paths, mode, count, clientOptions));
        payload[mode] = (paths.sent('b') - before) / (count * FLOW_BYTES);
        t.diagnostic(
          `${mode}: ${(100 * Math.min(1, payload[mode])).toFixed(0)} % of the payload went over the idle link`,
        );
      }
      // One draw: half of the flows. Two: three quarters. 200 flows have a standard error of 3.5 %.
      const { net, syn } = payload;
      return net < 0.66 && syn > 0.66 ? undefined : `net ${net}, syn ${syn} of the payload`;
    });
  });
}
