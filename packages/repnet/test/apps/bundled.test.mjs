/** The package in a bundle: every way to import it, in both formats that Node runs, minified as in production. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { build, stop } from 'esbuild';
import { root } from './support/process.mjs';

const WAYS = {
  'default.mjs': "import net from 'repnet'; export { net };",
  'interop.js': "import net from 'repnet'; export { net };",
  'whole.mjs': "import * as net from 'repnet'; export { net };",
  'names.mjs':
    "import { connect, createServer, Socket, stats } from 'repnet'; export const net = { connect, createServer, Socket, stats };",
  'required.cjs': "exports.net = require('repnet');",
};

const folder = mkdtempSync(join(tmpdir(), 'repnet-bundled-'));
after(() => {
  rmSync(folder, { recursive: true, force: true });
  return stop();
});

async function bundle(way, format) {
  writeFileSync(join(folder, way), WAYS[way]);
  const outfile = join(folder, `${way}.${format === 'esm' ? 'mjs' : 'cjs'}`);
  await build({
    entryPoints: [join(folder, way)],
    outfile,
    format,
    bundle: true,
    minify: true,
    platform: 'node',
    nodePaths: [join(root, '../node_modules')],
    // What esbuild asks for where a CommonJS package in an ES module requires modules of Node.
    banner: format === 'esm' ? { js: REQUIRE } : {},
  });
  return pathToFileURL(outfile);
}
const REQUIRE =
  "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);";

for (const way of Object.keys(WAYS))
  for (const format of ['cjs', 'esm'])
    test(`${way} as ${format}: a flow on two connections`, async (t) => {
      const imported = await import(await bundle(way, format));
      const { net } = imported.net ? imported : imported.default;
      const server = net.createServer((socket) => socket.pipe(socket)).listen(0, '127.0.0.1');
      t.after(() => server.close());
      await once(server, 'listening');
      const { port } = server.address();
      const socket = net.connect({ host: '127.0.0.1', port, replicate: 'flow', peer: 'repnet' });
      assert.ok(socket instanceof net.Socket);
      socket.end('carried');
      const [chunk] = await once(socket, 'data');
      assert.equal(String(chunk), 'carried');
      await once(socket, 'close');
      assert.equal(net.stats().flowsPaired, 1);
    });
