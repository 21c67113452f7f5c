/**
 * The short form of long/leak-*: when a flow is over, nothing holds its sockets, no handle of it is left, and no object of any
 * other kind.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { getHeapSnapshot, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import repnet from '../dist/index.js';
import { collect } from './apps/support/servers.mjs';
import { awhile, echo, settle } from './lib/support.mjs';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc');
const FLOWS = 100;

Object.assign(repnet.defaults, { waitTimeout: 200, pairTimeout: 150 });

const handles = () => process.getActiveResourcesInfo().filter((name) => name.startsWith('TCP')).length;

/** How many objects and functions there are; what the compiler keeps is none. */
async function objects() {
  const { snapshot, nodes } = JSON.parse(await collect(getHeapSnapshot()));
  const { node_fields: fields, node_types: types } = snapshot.meta;
  const type = fields.indexOf('type');
  const counted = ['object', 'closure'].map((name) => types[type].indexOf(name));
  let count = 0;
  for (let at = type; at < nodes.length; at += fields.length) if (counted.includes(nodes[at])) count++;
  return count;
}

for (const replicate of [false, 'syn', 'flow'])
  test(`replicate ${replicate}: the sockets of ${FLOWS} flows can be freed, their handles and all other objects are gone`, async (t) => {
    let sockets = [];
    const server = repnet.createServer((socket) => {
      sockets.push(new WeakRef(socket));
      socket.on('error', () => {}).on('data', (chunk) => socket.end(chunk));
    });
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    t.after(() => server.close());
    await settle(); // ports that were tried for a free pair are closed by now
    const listening = handles();
    const { port } = server.address();

    async function flow() {
      const socket = repnet.connect({ port, host: '127.0.0.1', replicate, peer: 'repnet' });
      sockets.push(new WeakRef(socket));
      assert.equal(await echo(socket, 'x'), 'x');
      socket.end();
      await once(socket, 'close');
    }

    /** Sends the flows; resolves to how many objects there are when they are over. */
    async function objectsAfterFlows() {
      for (let n = 0; n < FLOWS; n++) await flow();
      const held = () => sockets.filter((socket) => socket.deref() !== undefined).length;
      await awhile(() => {
        collectGarbage();
        return held() === 0 && handles() <= listening;
      });
      assert.deepEqual([sockets.length, held(), handles()], [2 * FLOWS, 0, listening]);
      sockets = [];
      return objects();
    }

    const before = await objectsAfterFlows();
    const after = await objectsAfterFlows();
    t.diagnostic(`${before} objects, then ${after}`);
    assert.ok(after - before < FLOWS / 2, `${after - before} objects are left of ${FLOWS} flows`);
  });
