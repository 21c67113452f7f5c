/** Compiled, never run: the types say what the package does. `npm run typecheck` fails if they stop to. */
import type * as net from 'node:net';
import repnet, {
  connect,
  createServer,
  defaults,
  info,
  type ReplicationOptions,
  type SocketInfo,
  type Stats,
  stats,
} from '../../src/index.js';

const asNet: net.Socket = connect({ host: 'h', port: 1, replicate: 'flow', threshold: 1 });
const server: net.Server = createServer({ loser: 'fin', addresses: ['h:1'] }, (socket) => socket.end());
const counters: Stats = stats();
const predicate: ReplicationOptions = { replicate: ({ port }) => (port === 6379 ? 'syn' : false) };
defaults.budget.bytes = 0.05;
repnet.Socket satisfies new () => net.Socket;
new repnet.Server().listen(0) satisfies net.Server;
const socket: repnet.Socket = new repnet.Socket({ replicate: 'syn' });
socket.connect({ port: 1, host: 'h', replicate: 'flow', threshold: 1 }, () => {}) satisfies repnet.Socket;
socket
  .connect({ path: '/a' })
  .connect(1, 'h')
  .connect(1, () => {})
  .connect('/a', () => {});
const known: SocketInfo | undefined = info(socket);
const winner: 'primary' | 'replica' | undefined = known?.winner;
// @ts-expect-error: not a mode
socket.connect({ port: 1, replicate: 'twice' });
// @ts-expect-error: not an option
socket.connect({ port: 1, replicat: 'flow' });
// @ts-expect-error: a snapshot
if (known) known.paired = false;
// @ts-expect-error: not a mode
connect({ port: 1, replicate: 'twice' });
// @ts-expect-error: an option that there is no more
createServer({ pairing: 'token' });

// In place of net, and its types by its names.
repnet satisfies typeof net;
const inPlace: typeof net = repnet;
const address: repnet.AddressInfo = { address: '::1', family: 'IPv6', port: 1 };
const where: repnet.NetConnectOpts = { port: 1 };
const list: repnet.BlockList = new repnet.BlockList();
const listens: repnet.ListenOptions & repnet.ServerOpts & repnet.DropArgument = { exclusive: true };
const stream: repnet.Socket = repnet.Socket.from(['x']) as repnet.Socket;
repnet.supported satisfies boolean;

export { address, asNet, counters, inPlace, list, listens, predicate, server, stream, where, winner };
