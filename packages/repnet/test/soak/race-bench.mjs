/** RepSYN, or net, through the relay: each flow from an address of its own, by which its connections are told from those of others. */
import repnet from '../../dist/index.js';
import { complete, misdeed, request, serve, serverHears } from '../lib/exchange.mjs';
import { startRelay } from '../lib/relay.mjs';
import { ownAddress } from '../lib/support.mjs';

/** Addresses of this process that the fault benches do not come to. */
const [FIRST, LAST] = [64, 191];

export async function startRaceBench({ api = repnet, alters } = {}) {
  const plans = new Map();
  const flows = new Map();
  const free = Array.from({ length: LAST - FIRST + 1 }, (_, n) => ownAddress(FIRST + n));
  const waiting = [];
  const relay = await startRelay({
    alters,
    translates: true,
    // Both connections go to the second port: the one that comes first is the first.
    faultsFor: (_port, _copy, from) => {
      const plan = plans.get(from);
      const nth = plan === undefined ? -1 : plan.connections++;
      return plan?.faults.filter(({ copy }) => copy === nth) ?? [];
    },
  });
  const raced = api === repnet ? { replicate: 'syn', peer: 'repnet' } : {};
  const options = { addresses: [`${relay.host}:${relay.port}`] };
  const server = api.createServer(api === repnet ? options : {});
  serve(server, flows);
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  relay.targetPort = server.address().port;

  return {
    async flow(faults, shape, { timeout } = {}) {
      const localAddress = free.pop() ?? (await new Promise((resolve) => waiting.push(resolve)));
      plans.set(localAddress, { faults, connections: 0 });
      const { host, port } = relay;
      const connect = () => api.connect({ host, port, localAddress, ...raced });
      const { client, seed, hung } = await request(connect, { ...shape, timeout });
      const silent = faults.some(({ kind }) => kind === 'stall');
      const told = () => ({ faults, shape, client, server: flows.get(seed) });
      if (!hung) await serverHears(() => flows.get(seed), silent, told);
      const side = flows.get(seed);
      flows.delete(seed);
      plans.delete(localAddress);
      if (silent) relay.dropFrom(localAddress);
      const next = waiting.shift();
      if (next === undefined) free.push(localAddress);
      else next(localAddress);
      const wrong = misdeed(client, 'client') ?? (side && misdeed(side, 'server'));
      return {
        wrong,
        hung,
        complete: !hung && complete(client) && side !== undefined && complete(side),
        describe: () => JSON.stringify({ faults, shape, wrong, hung, client, server: side }),
      };
    },
    async close() {
      relay.close();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** The winner is the only connection: whatever is struck, no more may be asked of it than of net. */
export function acceptRace(outcome, faults) {
  const struck = faults.filter(({ kind }) => kind !== 'pause');
  if (struck.length === 0) return outcome.wrong ?? (outcome.complete ? undefined : 'not complete');
  if (struck.some(({ kind }) => kind !== 'stall') && /silent end/.test(outcome.wrong)) return undefined;
  return outcome.wrong ?? (outcome.hung && !acceptRace.mayHang(faults) ? 'hung' : undefined);
}
acceptRace.mayHang = (faults) => faults.some(({ kind }) => kind === 'stall');
