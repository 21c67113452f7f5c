/** The package as `npm pack` makes it, installed in a folder of its own without a network, used as its users use it. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { env, installPackage } from './support/installed-package.mjs';
import { root, runNode } from './support/process.mjs';

const require = createRequire(import.meta.url);
const { exports: entries, version } = require('../../package.json');
const names = Object.keys(entries)
  .filter((entry) => entry !== './package.json')
  .map((entry) => `repnet${entry.slice(1)}`);

let folder;
before(async () => {
  folder = await installPackage();
});
after(() => rmSync(folder, { recursive: true, force: true }));

/** Runs a program in the folder; what it printed. */
async function program(name, text) {
  const file = join(folder, name);
  writeFileSync(file, text);
  const { code, stdout, stderr } = await runNode(file, [], { cwd: folder, env });
  assert.equal(code, 0, stderr);
  assert.equal(stderr, '');
  return stdout.trim();
}

const ECHO = `
  const server = net.createServer((socket) => socket.pipe(socket)).listen(0, '127.0.0.1', () => {
    const { port } = server.address();
    const socket = net.connect({ host: '127.0.0.1', port, replicate: 'flow', peer: 'repnet' });
    socket.end('carried');
    socket.on('data', (chunk) => console.log(String(chunk))).on('close', () => server.close());
  });`;

test('it brings what it runs on and what its users read, no sources, no tests and no dependencies', () => {
  const installed = join(folder, 'node_modules');
  assert.deepEqual(
    readdirSync(installed).filter((name) => !name.startsWith('.')),
    ['repnet'],
  );
  assert.deepEqual(readdirSync(join(installed, 'repnet')).sort(), [
    'LICENSE',
    'README.md',
    'dist',
    'docs',
    'package.json',
  ]);
});

/** The programs beside it, what they test and what builds them are no part of it. */
const MOST_BYTES = 150_000;

test(`the tarball is below ${MOST_BYTES} bytes`, () => {
  assert.ok(statSync(join(folder, `repnet-${version}.tgz`)).size < MOST_BYTES);
});

test("require('repnet') in place of require('net')", async () => {
  assert.equal(await program('one.cjs', `const net = require('repnet');${ECHO}`), 'carried');
});

test('import, the default', async () => {
  assert.equal(await program('one.mjs', `import net from 'repnet';${ECHO}`), 'carried');
});

test('import by name', async () => {
  const text = `import { connect, createServer, Socket, stats } from 'repnet';
    const net = { connect, createServer };
    process.on('exit', () => console.log(new Socket() instanceof Socket, stats().flowsPaired));${ECHO}`;
  assert.equal(await program('names.mjs', text), 'carried\ntrue 1');
});

test('every entry of the exports map, by require and by import, and nothing beside them', async () => {
  const text = `
    const names = ${JSON.stringify(names)};
    (async () => {
      for (const name of names) {
        const required = require(name);
        const imported = await import(name);
        console.log(name, Object.keys(required).length > 0 && Object.keys(required).every((key) => key in imported));
      }
      console.log(require('repnet/package.json').version);
      try { require('repnet/dist/wire.js') } catch ({ code }) { console.log(code) }
    })();`;
  assert.deepEqual((await program('entries.cjs', text)).split('\n'), [
    ...names.map((name) => `${name} true`),
    version,
    'ERR_PACKAGE_PATH_NOT_EXPORTED',
  ]);
});

test('repnet/http: a server and an agent', async () => {
  const text = `
    import { get } from 'node:http';
    import { Agent, createServer } from 'repnet/http';
    const server = createServer({}, (_, response) => response.end('served')).listen(0, '127.0.0.1', () => {
      const agent = new Agent({ replicate: 'flow', peer: 'repnet' });
      get({ host: '127.0.0.1', port: server.address().port, agent }, (response) => {
        response.on('data', (chunk) => console.log(String(chunk))).on('end', () => server.close());
      });
    });`;
  assert.equal(await program('http.mjs', text), 'served');
});

test('what is packed is what is built', () => {
  const file = 'dist/index.js';
  const installed = readFileSync(join(folder, 'node_modules/repnet', file), 'utf8');
  assert.equal(installed, readFileSync(join(root, file), 'utf8'));
});
