/** The declarations of the installed package, compiled with a consumer of theirs. */
import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { env, installPackage } from './support/installed-package.mjs';
import { root, runNode } from './support/process.mjs';

const CONSUMER = `
  import type * as net from 'node:net';
  import repnet, { connect, createServer, type ReplicationOptions, type Stats, stats } from 'repnet';
  import { Agent } from 'repnet/http';
  import * as tls from 'repnet/tls';
  import { connector } from 'repnet/undici';
  const options: ReplicationOptions = { replicate: ({ port }) => (port === 6379 ? 'syn' : 'flow') };
  const socket: net.Socket = connect({ host: 'h', port: 1, ...options });
  const server: repnet.Server = createServer({ loser: 'fin' }, (accepted) => accepted.end());
  const counters: Stats = stats();
  const agent = new Agent({ keepAlive: true, replicate: 'flow' });
  const secure = tls.connect({ host: 'h', port: 1, replicate: 'syn' });
  // @ts-expect-error: not a mode
  connect({ port: 1, replicate: 'twice' });
  export { agent, connector, counters, secure, server, socket };`;

const consumers = ['consumer.mts', 'consumer.cts'];
let folder;
before(async () => {
  folder = await installPackage();
  for (const name of consumers) writeFileSync(join(folder, name), CONSUMER);
});
after(() => rmSync(folder, { recursive: true, force: true }));

// TypeScript 7 has no such option any more.
test('its types are those of net without esModuleInterop, too', async () => {
  writeFileSync(
    join(folder, 'plain.cts'),
    `import * as net from 'repnet';
     export const server: import('node:net').Server = net.createServer((socket) => socket.end('bye')).listen(0);`,
  );
  const { code, stdout } = await runNode(
    join(root, '../node_modules/typescript/bin/tsc'),
    [
      ...['--noEmit', '--strict', '--module', 'node16', '--target', 'es2022', '--types', 'node'],
      ...['--esModuleInterop', 'false', '--typeRoots', join(root, '../node_modules/@types'), 'plain.cts'],
    ],
    { cwd: folder, env },
  );
  assert.equal(code, 0, stdout);
});

for (const compiler of ['typescript', 'typescript-7'])
  test(`${compiler}: its types compile in an ES module and in a CommonJS one, declarations included`, async () => {
    const { code, stdout } = await runNode(
      join(root, '../node_modules', compiler, 'bin/tsc'),
      [
        ...['--noEmit', '--strict', '--module', 'node16', '--target', 'es2022', '--types', 'node'],
        ...['--typeRoots', join(root, '../node_modules/@types'), ...consumers],
      ],
      { cwd: folder, env },
    );
    assert.equal(code, 0, stdout);
  });
