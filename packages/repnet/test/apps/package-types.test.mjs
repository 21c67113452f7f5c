/** The declarations of the installed package, compiled with a consumer of theirs. */
import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import { env, installPackage } from './support/installed-package.mjs';
import { root, runNode } from './support/process.mjs';

const require = createRequire(import.meta.url);

const CONSUMER = `
  import type * as net from 'node:net';
  import repnet, { connect, createServer, type ReplicationOptions, type Stats, stats } from 'repnet';
  import { Agent } from 'repnet/http';
  import * as tls from 'repnet/tls';
  import { connector } from 'repnet/undici';
  const options: ReplicationOptions = { replicate: ({ port }) => (port === 6379 ? 'syn' : 'flow') };
  const socket: net.Socket = connect({ host: 'h', port: 1, ...options });
  const server: repnet.Server = createServer({ pairing: 'token' }, (accepted) => accepted.end());
  const counters: Stats = stats();
  const agent = new Agent({ keepAlive: true, replicate: 'flow' });
  const secure = tls.connect({ host: 'h', port: 1, replicate: 'syn' });
  // @ts-expect-error: not a mode
  connect({ port: 1, replicate: 'twice' });
  export { agent, connector, counters, secure, server, socket };`;

test('its types compile in an ES module and in a CommonJS one, declarations included', async (t) => {
  const folder = await installPackage();
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const consumers = ['consumer.mts', 'consumer.cts'];
  for (const name of consumers) writeFileSync(join(folder, name), CONSUMER);
  const { code, stdout } = await runNode(
    require.resolve('typescript/bin/tsc'),
    [
      ...['--noEmit', '--strict', '--module', 'node16', '--target', 'es2022', '--types', 'node'],
      ...['--typeRoots', join(root, '../node_modules/@types'), ...consumers],
    ],
    { cwd: folder, env },
  );
  assert.equal(code, 0, stdout);
});
