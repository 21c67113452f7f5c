/** On the server's host: the service, and repnet-proxy in front of it. */
import { spawn } from 'node:child_process';
import { SERVICES } from './services.mjs';

const { service, proxy, programs } = JSON.parse(process.argv[2]);
const { program, listen, proxies } = SERVICES[service];
const started = [];
const start = ([name, ...rest]) =>
  started.push(spawn(name, rest, { stdio: ['ignore', 'ignore', 'inherit'] }));
if (program !== undefined) start(program(programs));
if (proxies !== undefined) start([process.execPath, proxy, ...proxies.server]);
for (const child of started)
  child.once('exit', (code, signal) => process.exit(code ?? (signal === null ? 0 : 1)));
await listen?.();
