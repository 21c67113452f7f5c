/** A process that exits in the callback of its last write: its peer has all of it, and an end and no error, as with net. */
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import repnet from '../dist/index.js';
import { messageOf } from './lib/support.mjs';

const PROGRAM = fileURLToPath(new URL('lib/exit-child.mjs', import.meta.url));
const HOST = '127.0.0.1';
const MODES = {
  net: { name: 'net' },
  off: { name: 'repnet', replicate: false },
  RepSYN: { name: 'repnet', replicate: 'syn', peer: 'repnet' },
  RepFlow: { name: 'repnet', replicate: 'flow', peer: 'repnet' },
};

function start(t, role, size, { name, ...options }, port) {
  const child = fork(PROGRAM, [role, name, String(size), JSON.stringify(options), String(port)]);
  t.after(() => child.kill());
  return child;
}

/** What the application hears of a socket, until it is closed. */
async function heard(socket) {
  const events = [];
  let bytes = 0;
  socket.on('data', (chunk) => (bytes += chunk.length));
  for (const event of ['end', 'error']) socket.on(event, (error) => events.push(error?.code ?? event));
  await new Promise((resolve) => socket.once('close', resolve));
  return { bytes, events };
}

for (const [mode, options] of Object.entries(MODES))
  for (const size of [10, 60_000]) {
    test(`${mode}: a client that exits when ${size} bytes are written`, async (t) => {
      const server = (options.name === 'net' ? net : repnet).createServer(options.server);
      server.listen(0, HOST);
      t.after(() => server.close());
      await once(server, 'listening');
      start(t, 'client', size, options, server.address().port);
      const [socket] = await once(server, 'connection');
      assert.deepEqual(await heard(socket), { bytes: size, events: ['end'] });
    });

    test(`${mode}: a server that exits when ${size} bytes are written`, async (t) => {
      const port = await messageOf(start(t, 'server', size, options));
      const { name, server, ...own } = options;
      const socket = (name === 'net' ? net : repnet).connect({ port, host: HOST, ...own });
      socket.write('x');
      assert.deepEqual(await heard(socket), { bytes: size, events: ['end'] });
    });
  }
