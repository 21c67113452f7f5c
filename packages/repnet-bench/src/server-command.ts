/** `repnet-bench server`. */

import { writeFileSync } from 'node:fs';
import * as net from 'node:net';
import { defaults } from 'repnet';
import { CommandLine, describeOptions, type OptionTable } from 'repnet-cli/command-line';
import { parseCount, parseEndpoint, parseTimeout } from 'repnet-cli/units';
import { listenReplicated, parseReplicaPort } from './dial.js';
import { serve } from './server.js';

export const serverOptions: OptionTable = {
  listen: { value: 'HOST:PORT', help: 'address to listen on; port 0 finds a free one (or a free pair)' },
  plain: {
    help: 'listen with node:net, as an unmodified server does; without it with repnet, which serves every mode',
  },
  'replica-port': { value: 'PORT', help: 'second port (when not port + 1)' },
  'wait-timeout': {
    value: 'TIME',
    help: "a flow waits so long for its second connection; more than the clients' 1s",
    default: '1200ms',
  },
  'max-connections': { value: 'N', help: 'refuse connections over this many', default: '20000' },
  summary: { value: 'FILE', help: 'JSON of the totals, written at the end' },
};

export const serverHelp = `Receive and send flows for repnet-bench clients; every byte is verified.

Usage: repnet-bench server --listen HOST:PORT [options]

${describeOptions(serverOptions)}

Prints one JSON line once it listens ({"ready":true,"host":...,"port":...,"replicaPort":...,"pid":...}).
SIGTERM or SIGINT ends it; exit code 0 if every byte was right, 1 if not, 2 if the command line is wrong.`;

export async function serverMain(argv: readonly string[]): Promise<number> {
  const line = new CommandLine(serverOptions, argv);
  const first = parseEndpoint(line.required('listen'), '--listen', true);
  const replicaPort = line.parsed('replica-port', (text, where) => parseReplicaPort(text, where, [first]));
  const plain = line.has('plain');
  defaults.waitTimeout = line.parsed('wait-timeout', parseTimeout)!;
  const replicated = plain ? undefined : listenReplicated({ noDelay: true, replicaPort });
  const server = replicated ?? net.createServer({ noDelay: true });
  server.maxConnections = parseCount(line.required('max-connections'), '--max-connections');
  const counts = serve(server);
  const sockets = new Set<net.Socket>();
  server.on('connection', (socket: net.Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(first, () => {
      server.off('error', reject);
      resolve();
    });
  });
  // A server that has just begun lets no flow start with its second connection, in case a process
  // before it has the first: what is measured should be the state after that.
  if (!plain) await new Promise((resolve) => setTimeout(resolve, 1.5 * defaults.waitTimeout));
  const asked = new Promise<void>((resolve) => {
    process.once('SIGTERM', () => resolve()).once('SIGINT', () => resolve());
  });
  const address = server.address() as net.AddressInfo;
  const ready = {
    ready: true,
    host: address.address,
    port: address.port,
    replicaPort: replicated?.replicaAddress()?.port ?? null,
    pid: process.pid,
  };
  process.stdout.write(`${JSON.stringify(ready)}\n`);
  await asked;
  const totals = { ...counts };
  server.close();
  for (const socket of sockets) socket.destroy();
  const summary = line.text('summary');
  if (summary !== undefined) writeFileSync(summary, `${JSON.stringify(totals, null, 2)}\n`);
  process.stderr.write(
    `${totals.exchanges} flows, ${totals.bytesUp} bytes up, ${totals.bytesDown} bytes down, ${totals.corrupt} corrupt, ${totals.broken} broken\n`,
  );
  return totals.corrupt === 0 ? 0 : 1;
}
