#!/usr/bin/env node
/** `repnet-proxy`: a sidecar that gives flow replication to applications in any language. */
import type { AddressInfo } from 'node:net';
import { CommandLine, describeOptions, type OptionTable, runCommand } from 'repnet-cli/command-line';
import { parseCount, parseDelay, parseEndpoint, parseShare, UsageError } from 'repnet-cli/units';
import { adminServer } from './admin.js';
import { parseConnect, parseListen, parseLoser, parsePeer, parseThreshold } from './endpoint.js';
import { type Route, Sidecar, type SidecarEvent } from './sidecar.js';
import { configureReplication } from './transport.js';

const OPTIONS: OptionTable = {
  listen: {
    value: 'ENDPOINT',
    help: 'tcp://HOST:PORT, unix:/PATH, or repnet://HOST:PORT (RepFlow, RepSYN and plain)',
    repeat: true,
  },
  connect: {
    value: 'ENDPOINT',
    help: 'where the n-th --listen goes: tcp://, unix:, syn:// or flow://',
    repeat: true,
  },
  threshold: { value: 'SIZE', help: 'bytes of a message that are carried twice', default: '100KB' },
  'copy-delay': {
    value: 'TIME',
    help: 'the second connection only if the first has brought nothing for so long',
    default: '0s',
  },
  loser: {
    value: 'HOW',
    help: 'close the connection that loses a race by rst or fin (default: fin to an unmodified server, rst to others)',
  },
  peer: {
    value: 'WHAT',
    help: 'take the destination for repnet or plain, or find out (auto)',
    default: 'auto',
  },
  'budget-bytes': { value: 'SHARE', help: 'extra bytes at most, as 5%, over all routes', default: 'none' },
  'budget-connections': { value: 'SHARE', help: 'extra connections at most', default: 'none' },
  admin: { value: 'HOST:PORT', help: 'serve /healthz, /readyz and /metrics here' },
  'max-connections': {
    value: 'N',
    help: 'relayed at a time, over all routes; one more is reset',
    default: '10000',
  },
  'connect-timeout': {
    value: 'TIME',
    help: 'until the destination must have answered; 0s for never',
    default: '10s',
  },
  'idle-timeout': { value: 'TIME', help: 'without a byte either way; 0s for never', default: '0s' },
  'drain-delay': {
    value: 'TIME',
    help: 'on SIGTERM, keep accepting this long with /readyz at 503',
    default: '0s',
  },
  'drain-timeout': {
    value: 'TIME',
    help: 'then wait this long for connections to end; the rest is reset',
    default: '30s',
  },
  'socket-mode': { value: 'OCTAL', help: 'permissions of a Unix socket that is listened on (0660)' },
  log: { value: 'WHAT', help: 'one JSON line on stderr per event: all, errors or none', default: 'errors' },
};

const HELP = `repnet-proxy: relay plain connections over RepFlow or RepSYN, or back

Beside a client:  repnet-proxy --listen tcp://127.0.0.1:6379 --connect flow://10.0.0.2:7000
Beside a server:  repnet-proxy --listen repnet://10.0.0.2:7000 --connect unix:/run/redis.sock
To a server that knows nothing of this:  repnet-proxy --listen tcp://127.0.0.1:6379 --connect syn://10.0.0.2:6379

${describeOptions(OPTIONS)}

repnet, syn and flow endpoints take options of their own, which win: ?replicaPort=PORT&threshold=SIZE&loser=HOW;
syn and flow also &copyDelay=TIME&peer=WHAT.
SIGUSR2 switches replication off for new connections, and on again.
SIGTERM drains: stop accepting, wait for connections to end, exit 0 (1 if some had to be reset). A second signal ends at once.`;

function routes(line: CommandLine): Route[] {
  const listens = line.texts('listen');
  const connects = line.texts('connect');
  if (listens.length === 0 || listens.length !== connects.length) {
    throw new UsageError(
      'ERR_USAGE',
      `give --listen and --connect in pairs (got ${listens.length} and ${connects.length})`,
    );
  }
  return listens.map((listen, index) => ({
    listen: parseListen(listen),
    connect: parseConnect(connects[index]!),
  }));
}

function socketMode(text: string, where: string): number {
  if (!/^0?[0-7]{3}$/.test(text))
    throw new UsageError('ERR_USAGE', `${where}: '${text}' is not three octal digits such as 0660`);
  return parseInt(text, 8);
}

function logger(what: 'all' | 'errors' | 'none'): (event: SidecarEvent) => void {
  return (event) => {
    const wrong =
      event.event === 'rejected' ||
      event.event === 'replication' ||
      event.event === 'listener-error' ||
      (event.event === 'relay-end' && event.end !== 'closed');
    if (what === 'none' || (what === 'errors' && !wrong)) return;
    process.stderr.write(`${JSON.stringify({ time: new Date().toISOString(), ...event })}\n`);
  };
}

async function main(argv: string[]): Promise<number> {
  if (argv.includes('--help')) {
    process.stdout.write(`${HELP}\n`);
    return 0;
  }
  const line = new CommandLine(OPTIONS, argv);
  const milliseconds = (name: string): number => line.parsed(name, parseDelay)!;
  configureReplication({
    threshold: line.parsed('threshold', parseThreshold)!,
    copyDelay: line.parsed('copy-delay', parseDelay)!,
    loser: line.parsed('loser', parseLoser),
    peer: line.parsed('peer', parsePeer)!,
    budget: {
      bytes: line.parsed('budget-bytes', parseShare)!,
      connections: line.parsed('budget-connections', parseShare)!,
    },
  });
  const mode = line.parsed('socket-mode', socketMode);
  const drain = { delay: milliseconds('drain-delay'), timeout: milliseconds('drain-timeout') };
  const sidecar = new Sidecar({
    routes: routes(line),
    maxConnections: parseCount(line.required('max-connections'), '--max-connections'),
    connectTimeout: milliseconds('connect-timeout'),
    idleTimeout: milliseconds('idle-timeout'),
    ...(mode === undefined ? {} : { socketMode: mode }),
    onEvent: logger(line.oneOf('log', ['all', 'errors', 'none'])),
  });
  const adminAt = line.parsed('admin', (text, where) => parseEndpoint(text, where, true));
  const admin = adminServer(sidecar);
  await sidecar.start();
  if (adminAt !== undefined) {
    await new Promise<void>((resolve, reject) =>
      admin.once('error', reject).listen(adminAt.port, adminAt.host, resolve),
    ).catch(async (error) => {
      await sidecar.drain(0); // it would keep the process, which has failed, alive
      throw error;
    });
  }
  const asked = new Promise<void>((resolve) => {
    process.once('SIGTERM', () => resolve()).once('SIGINT', () => resolve());
  });
  // A signal, not a request: only who may end the process can send one, and the metrics stay
  // readable by whoever reads them.
  if (process.platform !== 'win32') process.on('SIGUSR2', () => sidecar.switchReplication());
  const adminAddress = admin.address() as AddressInfo | null;
  process.stdout.write(
    `${JSON.stringify({ ready: true, pid: process.pid, listening: sidecar.addresses(), admin: adminAddress })}\n`,
  );

  await asked;
  process.on('SIGTERM', () => process.exit(1)).on('SIGINT', () => process.exit(1));
  sidecar.announceDrain();
  // Without a delay nothing is accepted once readiness is down.
  if (drain.delay > 0) await new Promise((resolve) => setTimeout(resolve, drain.delay));
  const reset = await sidecar.drain(drain.timeout);
  admin.close();
  admin.closeAllConnections();
  if (reset > 0)
    process.stderr.write(
      `repnet-proxy: ${reset} connections had not ended after --drain-timeout and were reset\n`,
    );
  return reset === 0 ? 0 : 1;
}

void runCommand('repnet-proxy', main);
