/**
 * A flow that net completes, completes: whoever refuses the second connection, or breaks it, or says nothing on it, at the bytes
 * about its preamble, its first record and the threshold, the application sees at both ends what it sees of net over the first connection alone.
 */
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import net from 'node:net';
import { after, before, test } from 'node:test';
import repnet from '../dist/index.js';
import { request, serve } from './lib/exchange.mjs';
import { startRelay } from './lib/relay.mjs';
import { defaults, OWN_ADDRESS, ownPort, until } from './lib/support.mjs';

const THRESHOLD = 2_000;
/** The header of a request. */
const HEADER = 16;
const [HELLO, ANSWER, RECORD] = [76, 24, 10];
const WIDTH = 24;

/** A server that has been there for long enough to let flows begin with their second connection. */
let grown;
const cleanups = [];
after(() => {
  for (const cleanup of cleanups) cleanup();
});

before(async () => {
  Object.assign(defaults, { threshold: THRESHOLD, pairTimeout: 300, waitTimeout: 600 });
  grown = await start({ after: (f) => cleanups.push(f) });
  await grown.grown();
});

const SHAPES = [-1, 0, 1]
  .map((n) => THRESHOLD - HEADER + n)
  .concat(100, 3 * THRESHOLD, 60 * THRESHOLD)
  .flatMap((requestLength, i, all) => [
    { requestLength, replyLength: all[(i + 3) % all.length] + HEADER, half: true },
    { requestLength, replyLength: 100 },
  ]);

const positions = (preamble) => [
  0,
  preamble - 1,
  preamble,
  preamble + RECORD,
  preamble + 500,
  preamble + RECORD + THRESHOLD - 1,
  preamble + RECORD + THRESHOLD,
];
/** What becomes of the second connection in each direction, and at which byte. */
const FAULTS = [
  ['up', positions(HELLO)],
  ['down', positions(ANSWER)],
].flatMap(([direction, places]) =>
  ['stall', 'rst', 'cut', 'fin'].flatMap((kind) => places.map((at) => ({ copy: 1, direction, kind, at }))),
);

/** The server is busy for longer than a client waits for a second connection. */
const busy = { copy: 0, direction: 'down', kind: 'pause', at: 0, ms: 900 };

const tell = (side) =>
  side && {
    connections: side.connections,
    bytes: side.bytes,
    whole: side.wrong === -1,
    ends: side.ends,
    errors: side.errors.map(({ code }) => code),
    closes: side.closes,
  };

/** A server, a relay to it, and flows through that; each is looked at from both ends. */
async function start(t, { api = repnet, relayOptions = {}, shared = false } = {}) {
  const flows = new Map();
  let plan = [];
  const relay = await startRelay({
    faultsFor: (_, copy) => plan.filter((fault) => fault.copy === copy),
    ...relayOptions,
  });
  const server = api.createServer(
    api === net ? {} : { addresses: shared ? [] : [`${relay.host}:${relay.port}`] },
  );
  let connections = 0;
  server.on('connection', () => connections++);
  serve(server, flows);
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  relay.targetPort = server.address().port;
  t.after(() => {
    relay.close();
    server.close();
  });
  const one = async (shape, options) => {
    const seed = randomInt(0xffffffff);
    const { host, port } = relay;
    // The relay uses the source port again, which a connection whose port the kernel chose would not let it.
    const from = relayOptions.translates ? {} : { localAddress: OWN_ADDRESS, localPort: ownPort() };
    const connect = () => api.connect({ host, port, ...from, ...options });
    const { client, hung } = await request(connect, { seed, ...shape });
    if (!hung) await until(() => (flows.get(seed)?.closes ?? 0) > 0, 'the server has closed').catch(() => {});
    const seen = { client: tell(client), server: tell(flows.get(seed)), hung };
    flows.delete(seed);
    return seen;
  };
  return {
    relay,
    /** A server that has just begun lets no flow begin with its second connection. */
    async grown() {
      const shape = { requestLength: 100, replyLength: 100, timeout: 700 };
      for (plan = [{ copy: 0, direction: 'up', kind: 'nosyn', at: 0 }]; ; )
        if (!(await one(shape, MODES[0])).hung) return;
    },
    /** As many flows at a time as do not disturb each other; in the order of `shapes`. */
    async all(shapes, options, faults = []) {
      plan = faults;
      const before = connections;
      const seen = [];
      const queue = shapes.entries();
      const work = async () => {
        for (const [i, shape] of queue) seen[i] = await one(shape, options);
      };
      await Promise.all(Array.from({ length: WIDTH }, work));
      return { seen, connections: connections - before };
    },
  };
}

/** What net shows of each shape, without a second connection. */
let expected;
before(async () => {
  const { all } = await start({ after: (f) => cleanups.push(f) }, { api: net });
  expected = await all(SHAPES, {});
});

test('net, by which the others are judged, completes each', async () => {
  for (const [i, { client, server }] of expected.seen.entries()) {
    const { requestLength, replyLength } = SHAPES[i];
    const whole = { connections: 1, whole: true, ends: 1, errors: [], closes: 1 };
    assert.deepEqual(client, { ...whole, bytes: replyLength });
    assert.deepEqual(server, { ...whole, bytes: requestLength });
  }
});

const MODES = [
  { replicate: 'flow', peer: 'repnet' },
  { replicate: 'flow', peer: 'auto' },
  { replicate: 'flow', peer: 'repnet', copyDelay: 2 },
];
const RACES = ['repnet', 'auto'].map((peer) => ({ replicate: 'syn', peer }));

const named = (mode) => `${mode.replicate}, peer ${mode.peer}${mode.copyDelay ? ', hedged' : ''}`;

const races = ({ replicate }) => replicate === 'syn';

/**
 * A flow from a port of the application's own never races: for races the relay lets the kernel choose ports.
 */
const relayFor = (mode, relayOptions) => (races(mode) ? { ...relayOptions, translates: true } : relayOptions);
const inTime = (mode, relayOptions) => !races(mode) || mode.peer === 'auto' || relayOptions?.refuses === true;

/** Who refuses, and how he is put in the second connection's way. */
const REFUSERS = {
  'nobody listens there': { relayOptions: { refuses: true } },
  'nobody listens there, behind NAT': {
    relayOptions: { refuses: true, translates: true },
  },
  'the network translates addresses and ports': { relayOptions: { translates: true } },
  'another process has it': { other: () => repnet.createServer({ addresses: [] }), offset: 1 },
  'a line-based service': {
    other: () => net.createServer((s) => s.on('error', () => {}).end('400 what?\r\n')),
  },
  'a service that hangs up': {
    other: () => net.createServer((s) => s.on('error', () => {}).resetAndDestroy()),
  },
  'a service that listens': { other: () => net.createServer((s) => s.on('error', () => {}).resume()) },
  'nobody, and nobody says so': { faults: [{ copy: 1, direction: 'up', kind: 'nosyn', at: 0 }] },
};

/** A server and a relay to it, where `who` refuses the second connection; `plan` are the faults that he is made of. */
async function refusedBy(t, who, mode) {
  const { relayOptions, other, offset = 0, faults: plan = [] } = REFUSERS[who];
  const { all, relay } = await start(t, {
    relayOptions: relayFor(mode, relayOptions),
    shared: who.startsWith('the network'),
  });
  if (other !== undefined) {
    const server = other();
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    t.after(() => server.close());
    relay.secondPort = server.address().port + offset;
  }
  return { all, plan };
}

for (const [who, { relayOptions }] of Object.entries(REFUSERS))
  for (const mode of [...MODES, ...RACES].filter((each) => inTime(each, relayOptions)))
    test(`the second connection is refused, ${named(mode)}: ${who}`, async (t) => {
      const { all, plan } = await refusedBy(t, who, mode);
      const before = repnet.stats().flowsSyn;
      assert.deepEqual(await all(SHAPES, mode, plan), expected);
      if (!races(mode)) return;
      // By now the server has been asked, if it is.
      assert.deepEqual(await all(SHAPES, mode, plan), expected);
      assert.equal(repnet.stats().flowsSyn > before, mode.peer === 'repnet', 'raced');
    });

for (const mode of RACES)
  test(`nobody refuses, ${named(mode)}`, async (t) => {
    const { all } = await start(t, { relayOptions: relayFor(mode) });
    const before = repnet.stats().flowsSyn;
    do assert.deepEqual(await all(SHAPES, mode), expected);
    while (repnet.stats().flowsSyn === before);
  });

/** What wins a race is the one connection there is, and breaks as net's does; what asks first whether there may be one is another. */
for (const kind of ['stall', 'rst', 'cut', 'fin'])
  for (const [direction, places] of [
    ['up', [0, 1, HELLO - 1]],
    ['down', [0, 1, ANSWER - 1]],
  ])
    test(`the question before a race fails, by ${kind}, ${direction}, before all of the answer is there`, async (t) => {
      for (const at of places) {
        const { all } = await start(t, { relayOptions: relayFor(RACES[1]) });
        const fault = { copy: 1, direction, kind, at };
        for (const flows of ['first', 'next'])
          assert.deepEqual(await all(SHAPES, RACES[1], [fault]), expected, `${flows}, ${at}`);
      }
    });

/** Of several versions of Node each has others of them, all together every one. */
const share = Number(process.env.REPNET_FAULT_SHARE ?? 1);
const generation = Math.floor(Number.parseInt(process.versions.node, 10) / 2);
const failing = MODES.filter((_, n) => (n + generation) % share === 0);

for (const mode of failing)
  for (const kind of ['stall', 'rst', 'cut', 'fin'])
    for (const direction of ['up', 'down'])
      test(`the second connection fails, ${named(mode)}, by ${kind}, ${direction}, about the preamble and the threshold`, async () => {
        const { all } = grown;
        for (const fault of FAULTS.filter((f) => f.kind === kind && f.direction === direction))
          assert.deepEqual(await all(SHAPES, mode, [fault]), expected, JSON.stringify(fault));
      });

test(`the second connection falls silent, while the server is busy for long`, async () => {
  const { all } = grown;
  for (const [direction, at] of [
    ['up', HELLO],
    ['up', HELLO + RECORD + THRESHOLD],
    ['down', 0],
    ['down', ANSWER],
    ['down', ANSWER + RECORD + THRESHOLD],
  ]) {
    const silence = { copy: 1, direction, kind: 'stall', at };
    assert.deepEqual(await all(SHAPES, MODES[0], [busy, silence]), expected, JSON.stringify(silence));
  }
});

for (const who of Object.keys(REFUSERS))
  test(`the second connection is refused, while the server is busy for long: ${who}`, async (t) => {
    const { all, plan } = await refusedBy(t, who, MODES[0]);
    assert.deepEqual(await all(SHAPES, MODES[0], [busy, ...plan]), expected);
  });
