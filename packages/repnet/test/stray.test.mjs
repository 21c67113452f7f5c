/** The drop-in tests take of a server what it accepted of their own client: a stray connection to its port is passed over. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import { test } from 'node:test';
import repnet from '../dist/index.js';
import { dial, echo, echoing, HOST, serve } from './lib/observe.mjs';

for (const [name, api] of Object.entries({ net, repnet }))
  test(`${name}: what is accepted of a client is found beside a stray connection that comes after it`, async (t) => {
    const on = { api, cleanUp: [() => {}] };
    t.after(() => {
      for (const undo of on.cleanUp) undo();
    });
    const { port, acceptedFrom } = await serve(on, {}, echoing);
    const socket = dial(on, { port, host: HOST });
    await echo(socket);
    const stray = dial({ ...on, api: net }, { port, host: HOST });
    await echo(stray);
    const accepted = await acceptedFrom(socket);
    socket.destroy();
    await once(accepted, 'close');
    assert.equal(stray.destroyed, false);
  });
