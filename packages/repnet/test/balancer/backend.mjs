/** backend.mjs HOST PORT LIBRARY: a server behind the balancer. Told 'drain' it takes no more, and is gone with its last flow. */
import net from 'node:net';
import repnet from '../../dist/index.js';
import { complete, misdeed, serve } from '../lib/exchange.mjs';
import { until } from '../lib/support.mjs';

const [, , host, port, library] = process.argv;
Object.assign(repnet.defaults, JSON.parse(process.env.REPNET_DEFAULTS));

const flows = new Map();
const server = library === 'net' ? net.createServer() : repnet.createServer();
serve(server, flows);
server.listen(Number(port), host, () => process.send('ready'));

process.on('disconnect', () => process.exit());
process.once('message', () => {
  // Sockets say 'close' after the server has counted them.
  server.close(report);
});

async function report() {
  const open = () => [...flows].filter(([, { closes }]) => closes === 0);
  await until(() => open().length === 0, 'every flow is closed', open);
  const sides = [...flows].map(([seed, side]) => {
    const what = misdeed(side, 'server') ?? (complete(side) ? undefined : 'the server has not all of it');
    return { seed, what, side: what && { ...side, errors: side.errors.map(String) } };
  });
  const { flowsPaired, refused, earlierPeers } = repnet.stats();
  process.send({ sides, flowsPaired, refused, earlierPeers }, () => process.disconnect());
}
