/** The short form of long/leak-*: when a flow is over, nothing holds its sockets, and no handle of it is left. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import repnet from '../dist/index.js';
import { awhile, echo, settle } from './lib/support.mjs';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc');
const FLOWS = 100;

Object.assign(repnet.defaults, { waitTimeout: 200, pairTimeout: 150 });

const handles = () => process.getActiveResourcesInfo().filter((name) => name.startsWith('TCP')).length;

for (const replicate of [false, 'syn', 'flow'])
  test(`replicate ${replicate}: the sockets of ${FLOWS} flows can be freed, and their handles are gone`, async (t) => {
    const sockets = [];
    const server = repnet.createServer((socket) => {
      sockets.push(new WeakRef(socket));
      socket.on('error', () => {}).on('data', (chunk) => socket.end(chunk));
    });
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    t.after(() => server.close());
    await settle(); // ports that were tried for a free pair are closed by now
    const listening = handles();

    const flow = async () => {
      const socket = repnet.connect({
        port: server.address().port,
        host: '127.0.0.1',
        replicate,
        peer: 'repnet',
      });
      sockets.push(new WeakRef(socket));
      assert.equal(await echo(socket, 'x'), 'x');
      socket.end();
      await once(socket, 'close');
    };
    for (let n = 0; n < FLOWS; n++) await flow();

    const held = () => sockets.filter((socket) => socket.deref() !== undefined).length;
    await awhile(() => {
      collect();
      return held() === 0 && handles() <= listening;
    });
    assert.deepEqual([sockets.length, held(), handles()], [2 * FLOWS, 0, listening]);
  });
