/** Servers that speak first (SMTP, MySQL, SSH) greet at once: no timer has to fire before a client hears them, whoever replicates. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import { beforeEach, test } from 'node:test';
import { forgetPeers } from '../dist/client/peers.js';
import repnet from '../dist/index.js';
import { movedClock } from './lib/moved-clock.mjs';

const HOST = '127.0.0.1';
const GREETING = '220 ready\r\n';
const SERVERS = {
  net: [net, {}],
  repnet: [repnet, {}],
  'repnet, switched off': [repnet, { replicate: false }],
};
const CLIENTS = {
  'a plain client': [net, {}],
  RepFlow: [repnet, { replicate: 'flow' }],
  'RepFlow, told': [repnet, { replicate: 'flow', peer: 'repnet' }],
  'RepFlow, hedged': [repnet, { replicate: 'flow', peer: 'repnet', copyDelay: 1_000 }],
  RepSYN: [repnet, { replicate: 'syn' }],
  'RepSYN, told': [repnet, { replicate: 'syn', peer: 'repnet' }],
};
beforeEach(forgetPeers);

for (const [server, [library, options]] of Object.entries(SERVERS))
  for (const [client, [api, replication]] of Object.entries(CLIENTS))
    test(`${client} of a server of ${server} hears its greeting while all clocks stand still`, async (t) => {
      const clock = movedClock();
      t.after(() => clock.stop());
      const listening = library.createServer(options, (socket) =>
        socket.on('error', () => {}).write(GREETING),
      );
      await once(listening.listen(0, HOST), 'listening');
      t.after(() => listening.close());
      // The second flow is that of a server that is known.
      for (let flow = 0; flow < 2; flow++) {
        const socket = api.connect({ port: listening.address().port, host: HOST, ...replication });
        t.after(() => socket.destroy());
        const [greeting] = await once(socket, 'data');
        assert.equal(String(greeting), GREETING);
        socket.destroy();
      }
    });
