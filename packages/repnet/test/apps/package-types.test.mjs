/** The declarations of the installed package, compiled with consumers of theirs. */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { env, installPackage } from './support/installed-package.mjs';
import { root, runNode } from './support/process.mjs';

const CONSUMER = `
  import * as http from 'node:http';
  import * as net from 'node:net';
  import type * as tlsOfNode from 'node:tls';
  import repnet, { connect, createServer, type ReplicationOptions, type Stats, stats } from 'repnet';
  import { Agent, createServer as createHttpServer } from 'repnet/http';
  import * as metrics from 'repnet/prometheus';
  import * as tls from 'repnet/tls';
  import { connector } from 'repnet/undici';

  const inPlace: typeof net = repnet;
  const ways: [typeof net.connect, typeof net.createServer, typeof net.Socket, typeof net.Server] =
    [repnet.createConnection, repnet.createServer, repnet.Socket, repnet.Server];
  const options: ReplicationOptions = { replicate: ({ port }) => (port === 6379 ? 'syn' : 'flow') };
  const socket: net.Socket = connect({ host: 'h', port: 1, ...options });
  const server: repnet.Server = createServer({ loser: 'fin' }, (accepted) => accepted.end());
  const plain: net.Server = server.on('connection', (accepted) => accepted.resetAndDestroy());
  class Mine extends repnet.Socket {}
  const mine: net.Socket = new Mine({ allowHalfOpen: true });
  const counters: Stats = stats();
  const agent: http.Agent = new Agent({ keepAlive: true, replicate: 'flow' });
  const web: http.Server[] = [
    createHttpServer((request, response) => response.end(request.url)),
    createHttpServer({ loser: 'fin' }, (request, response) => response.end(request.url)),
  ];
  const secure: tlsOfNode.TLSSocket = tls.connect({ host: 'h', port: 1, replicate: 'syn' });
  // @ts-expect-error: not a mode
  connect({ port: 1, replicate: 'twice' });
  export { agent, connector, counters, inPlace, metrics, mine, plain, secure, server, socket, ways, web };`;

/** As of net itself, there is no default import without esModuleInterop. */
const PLAIN = `
  import * as net from 'repnet';
  export const server: import('node:net').Server = net.createServer((socket) => socket.end('bye')).listen(0);`;

const modules = join(root, '../node_modules');
let folder;
let types;
before(async () => {
  folder = await installPackage();
  types = join(folder, 'node_modules/@types/node');
  mkdirSync(join(types, '..'));
  for (const name of ['consumer.mts', 'consumer.cts']) writeFileSync(join(folder, name), CONSUMER);
  writeFileSync(join(folder, 'plain.cts'), PLAIN);
});
after(() => rmSync(folder, { recursive: true, force: true }));

/** Compiles files of the folder with these types of Node, the library's declarations included. */
async function compile(compiler, typesOfNode, ...args) {
  rmSync(types, { force: true });
  symlinkSync(join(modules, typesOfNode), types);
  const { code, stdout } = await runNode(
    join(modules, compiler, 'bin/tsc'),
    [
      '--noEmit',
      '--strict',
      '--module',
      'node16',
      '--target',
      'es2022',
      '--lib',
      'es2023',
      '--types',
      'node',
    ].concat(args),
    { cwd: folder, env },
  );
  assert.equal(code, 0, stdout);
}

for (const [name, major] of [
  ['@types/node', 20],
  ['types-node-22', 22],
  ['types-node-24', 24],
  ['types-node-26', 26],
])
  test(`with the types of Node ${major} they are assignable to net's, in an ES module and in a CommonJS one`, async () => {
    const { version } = JSON.parse(readFileSync(join(modules, name, 'package.json'), 'utf8'));
    assert.equal(Number.parseInt(version, 10), major);
    await compile('typescript-7', name, 'consumer.mts', 'consumer.cts');
  });

// TypeScript 7 has no such option any more.
test('TypeScript 5 compiles them without esModuleInterop, too', () =>
  compile('typescript', 'types-node-24', '--esModuleInterop', 'false', 'plain.cts', 'consumer.mts'));
