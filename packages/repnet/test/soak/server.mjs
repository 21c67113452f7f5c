/** server.mjs LIBRARY: the servers of the soak in one process, also a worker of a cluster; tells what its flows came to when asked. */
import net from 'node:net';
import repnet from '../../dist/index.js';
import { complete, misdeed, serve } from '../lib/exchange.mjs';
import { grown, until } from '../lib/support.mjs';
import { HOST, SERVERS } from './fabrics.mjs';

const api = process.argv[2] === 'net' ? net : repnet;
Object.assign(repnet.defaults, JSON.parse(process.env.REPNET_SOAK_DEFAULTS ?? '{}'));

const flows = new Map();
for (const { port, threshold } of SERVERS) {
  const server = api === net ? net.createServer() : repnet.createServer({ threshold });
  serve(server, flows);
  await new Promise((resolve) => server.listen(port, HOST, resolve));
}
// Only from then on do flows begin with their second connection.
if (api === repnet) await grown();
process.send('ready');

process.on('message', async () => {
  const open = () => [...flows].filter(([, { closes }]) => closes === 0);
  // A flow that is not over in the end is told of as what it is.
  await until(() => open().length === 0, 'every flow is closed', open).catch(console.error);
  const sides = [...flows];
  const wrong = sides.flatMap(([seed, side]) => {
    const what = misdeed(side, 'server') ?? (complete(side) ? undefined : 'the server has not all of it');
    return what === undefined ? [] : [[seed, what]];
  });
  process.send({ seeds: sides.map(([seed]) => seed), wrong });
});
process.on('disconnect', () => process.exit());
