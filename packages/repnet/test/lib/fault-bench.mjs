/** Flows through a relay that breaks them by plan, many at a time, each judged when it is over. */
import repnet from '../../dist/index.js';
import { complete, misdeed, request, serve } from './exchange.mjs';
import { startRelay } from './relay.mjs';

export async function startFaultBench({ pairing = 'address', pairTimeout = 500, waitTimeout = 800 } = {}) {
  Object.assign(repnet.defaults, { pairTimeout, waitTimeout });
  const flows = new Map();
  const connections = new Map();
  const plans = new Map();
  const relay = await startRelay({
    faultsFor: (port, copy) => (plans.get(port) ?? []).filter((fault) => fault.copy === copy),
  });
  const address = `${relay.host}:${relay.port}`;
  // The relay leads to this process and no other, which a server cannot know by itself.
  const server = repnet.createServer({ pairing, addresses: [address] });
  serve(server, flows, connections);
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  relay.targetPort = server.address().port;
  let nextPort = 10_000 + Math.floor(Math.random() * 20_000);
  let judged = 0;

  /** Runs one flow; returns what is wrong with it (undefined: nothing), and how it ended. */
  async function flow(faults, shape, { timeout = 4_000 } = {}) {
    for (;;) {
      nextPort = nextPort >= 31_999 ? 10_000 : nextPort + 1;
      const localPort = nextPort;
      plans.set(localPort, faults);
      connections.delete(localPort);
      const connect = () =>
        repnet.connect({
          host: relay.host,
          port: relay.port,
          localPort,
          replicate: 'flow',
          peer: 'repnet',
          pairing,
        });
      const result = await request(connect, { ...shape, timeout });
      const { client } = result;
      if (client.errors.some((e) => e.code === 'EADDRINUSE' || e.code === 'EADDRNOTAVAIL')) continue;
      judged++;
      // The server learns of the end after the client does.
      const until = Date.now() + 5_000;
      let side = flows.get(result.seed);
      while (!result.hung && Date.now() < until && side !== undefined && side.closes === 0) {
        await new Promise((resolve) => setTimeout(resolve, 5));
        side = flows.get(result.seed);
      }
      plans.delete(localPort);
      flows.delete(result.seed);
      const { count, silent } = connections.get(localPort) ?? { count: 0, silent: 0 };
      connections.delete(localPort);
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
          }),
      };
    }
  }

  return {
    address,
    flow,
    get judged() {
      return judged;
    },
    /** Runs `jobs` (functions that return promises) `width` at a time. */
    async all(jobs, width = 48) {
      const queue = jobs[Symbol.iterator]();
      await Promise.all(
        Array.from({ length: width }, async () => {
          for (let next = queue.next(); !next.done; next = queue.next()) await next.value();
        }),
      );
    },
    async close() {
      relay.close();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
