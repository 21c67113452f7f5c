/** Flows through a relay that breaks them by plan, many at a time, each judged when it is over. */
import repnet from '../../dist/index.js';
import { complete, misdeed, request, serve, serverHears } from './exchange.mjs';
import { startRelay } from './relay.mjs';
import { ownAddress, ticks } from './support.mjs';

const [FIRST_PORT, LAST_PORT] = [10_000, 31_999];
/** Longest time for which the event loop may stand still without its being told with the flows of that time. */
const STILL = 50;
const MOST_STILL = 1_000;
/** Milliseconds after which a flow that is not over does nothing but wait. */
const IDLE = 2_000;
let addresses = 0;

const isSilent = ({ kind }) => kind === 'stall' || kind === 'nosyn';

/** `connect`: further options of each flow; `alters`: the relay's. */
export async function startFaultBench({
  pairTimeout = 500,
  waitTimeout = 800,
  connect: further = {},
  alters,
} = {}) {
  Object.assign(repnet.defaults, { pairTimeout, waitTimeout });
  /** What may have fallen silent is all that the flow has: hedged, it may have its first connection only. */
  const mayNotHear = (faults) =>
    faults.some(isSilent) &&
    (new Set(faults.map(({ copy }) => copy)).size > 1 ||
      (further.copyDelay !== undefined && faults.some((fault) => fault.copy === 0 && isSilent(fault))));
  const flows = new Map();
  const connections = new Map();
  const plans = new Map();
  const collided = new Set();
  const relay = await startRelay({
    alters,
    faultsFor: (port, copy, from) =>
      (plans.get(`${from}:${port}`) ?? []).filter((fault) => fault.copy === copy),
    onCollision: (port, from) => collided.add(`${from}:${port}`),
  });
  const address = `${relay.host}:${relay.port}`;
  // The relay leads to this process and no other, which a server cannot know by itself.
  const server = repnet.createServer({ addresses: [address] });
  serve(server, flows, connections);
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  relay.targetPort = server.address().port;
  let judged = 0;

  /** When the event loop stood still, and for how long: what a flow that is not as it should be may have suffered from. */
  const still = [];
  let seenAt = performance.now();
  const watch = setInterval(() => {
    const now = performance.now();
    if (now - seenAt > STILL) still.push({ at: Math.round(seenAt), ms: Math.round(now - seenAt) });
    if (still.length > MOST_STILL) still.shift();
    seenAt = now;
  }, 10).unref();

  /** Each source is used once: the kernel may hold connections of a flow that is over for as long as one end of them lives. */
  let host;
  let port = LAST_PORT;
  let acquainted;
  const next = () => ({ localAddress: host, localPort: port++ });
  async function source() {
    if (port >= LAST_PORT) {
      host = ownAddress(++addresses);
      port = FIRST_PORT;
      acquainted = acquaint();
    }
    const from = next();
    await acquainted;
    return from;
  }

  /** A server expects the second connection of a host that has paired: a few flows go first from each address. */
  async function acquaint() {
    for (let n = 0; n < 10; n++) await attempt(next(), [], { requestLength: 1_000, replyLength: 2_000 });
  }

  /** Undefined: the port was somebody else's, at the client or at the relay, which has nothing to do with what the network does. */
  async function attempt(from, faults, shape, timeout) {
    const name = `${from.localAddress}:${from.localPort}`;
    plans.set(name, faults);
    const connect = () =>
      repnet.connect({
        host: relay.host,
        port: relay.port,
        ...from,
        replicate: 'flow',
        peer: 'repnet',
        ...further,
      });
    const began = performance.now();
    const result = await request(connect, { ...shape, timeout });
    const { client } = result;
    const told = () => ({ faults, shape, client, server: flows.get(result.seed) });
    if (!result.hung) await serverHears(() => flows.get(result.seed), mayNotHear(faults), told);
    const side = flows.get(result.seed);
    const { count, silent } = connections.get(name) ?? { count: 0, silent: 0 };
    const took = Math.round(performance.now() - began);
    if (faults.some(isSilent)) relay.drop(name);
    plans.delete(name);
    flows.delete(result.seed);
    connections.delete(name);
    if (client.errors.some((e) => e.code === 'EADDRINUSE' || e.code === 'EADDRNOTAVAIL')) return undefined;
    if (collided.delete(name)) return undefined;
    judged++;
    const phantoms =
      count > 1 ? `server: ${count} connections for one flow, ${silent} of them silent` : undefined;
    const wrong = phantoms ?? misdeed(client, 'client') ?? (side && misdeed(side, 'server'));
    return {
      wrong,
      hung: result.hung,
      complete: !result.hung && complete(client) && side !== undefined && complete(side),
      describe: () =>
        JSON.stringify({
          faults,
          shape,
          wrong,
          hung: result.hung,
          client: [client.bytes, client.ends, ...client.errors.map((e) => e.message)],
          server: side && [side.bytes, side.ends, side.closes, ...side.errors.map((e) => e.message)],
          began: Math.round(began),
          took,
          still: still.filter(({ at, ms }) => at + ms > began && at < began + took),
        }),
    };
  }

  return {
    address,
    /** Runs one flow; returns what is wrong with it (undefined: nothing), and how it ended. */
    async flow(faults, shape, { timeout } = {}) {
      for (;;) {
        const outcome = await attempt(await source(), faults, shape, timeout);
        if (outcome !== undefined) return outcome;
      }
    },
    get judged() {
      return judged;
    },
    /**
     * Runs `jobs` (functions that return promises) `width` at a time. One that takes long waits for what has fallen silent, and makes
     * room for others, up to ten times as many.
     */
    async all(jobs, width = 48) {
      const queue = jobs[Symbol.iterator]();
      const waiting = new Set();
      const work = async () => {
        for (let next = queue.next(); !next.done; next = queue.next()) {
          const job = next.value();
          const isOver = await Promise.race([job.then(() => true), ticks(IDLE / 50, 50)]);
          if (isOver) continue;
          if (waiting.size >= 9 * width) await job;
          else {
            const rest = job.finally(() => waiting.delete(rest));
            waiting.add(rest);
          }
        }
      };
      await Promise.all(Array.from({ length: width }, work));
      await Promise.all(waiting);
    },
    async close() {
      clearInterval(watch);
      relay.close();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/**
 * A server that has just begun refuses what it cannot place rather than begin a flow twice: whichever connection of a flow is the only
 * one has to be let begin it, several times in a row.
 */
export async function grownUp(bench, shape) {
  for (let begun = 0; begun < 5; ) {
    const alone = [0, 1].map((copy) => bench.flow([{ copy, kind: 'nosyn' }], shape, { timeout: 2_000 }));
    begun = (await Promise.all(alone)).every(({ complete }) => complete) ? begun + 1 : 0;
  }
}
