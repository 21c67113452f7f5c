/** A socket that its application destroys while it is told of the way to the server does not go there, in any mode. */
import assert from 'node:assert/strict';
import net from 'node:net';
import { before, test } from 'node:test';
import repnet from '../dist/index.js';
import { countingServer, defaults, settle } from './lib/support.mjs';

before(() => {
  Object.assign(defaults, { waitTimeout: 300, pairTimeout: 300 });
});

const TIMES = 5;

const MODES = {
  plain: { replicate: false },
  RepFlow: { replicate: 'flow' },
  'RepFlow, hedged': { replicate: 'flow', copyDelay: 20 },
  'RepFlow, told of the server': { replicate: 'flow', peer: 'repnet' },
  RepSYN: { replicate: 'syn' },
  'RepSYN to a plain server': { replicate: 'syn', peer: 'plain' },
  'RepSYN, told of the server': { replicate: 'syn', peer: 'repnet' },
};

/** Resolves to addresses at which somebody listens, later or at once; of the second family of answers there is one. */
const lookups = {
  'several addresses': (_host, { all }, done) => {
    const found = ['127.0.0.1', '127.0.0.2'].map((address) => ({ address, family: 4 }));
    setImmediate(() => (all ? done(null, found) : done(null, '127.0.0.1', 4)));
  },
  'one address': (_host, { all }, done) =>
    setImmediate(() =>
      all ? done(null, [{ address: '127.0.0.1', family: 4 }]) : done(null, '127.0.0.1', 4),
    ),
  'an address at once': (_host, { all }, done) =>
    all ? done(null, [{ address: '127.0.0.1', family: 4 }]) : done(null, '127.0.0.1', 4),
};

/** Node 20.11 has no 'connectionAttempt', and throws where a plain socket is destroyed in 'lookup'. */
const isOldest = process.versions.node.startsWith('20.11.');

for (const [mode, options] of Object.entries(MODES))
  for (const [names, lookup] of Object.entries(lookups))
    for (const event of ['lookup', 'connectionAttempt']) {
      // A plain socket is net's, which throws in 'connectionAttempt'.
      const isNets = mode === 'plain' || mode === 'RepSYN';
      if (event === 'connectionAttempt' ? isNets || isOldest : isNets && isOldest) continue;
      test(`${mode}, ${names}, destroyed in '${event}': nobody is connected to`, async (t) => {
        const server = await countingServer(t, options.peer === 'plain' ? net : repnet);
        let told = 0;
        for (let n = 0; n < TIMES; n++) {
          const socket = new repnet.Socket();
          t.after(() => socket.destroy());
          socket.on('error', () => {});
          const closed = new Promise((resolve) => socket.once('close', resolve));
          socket.once(event, () => {
            told++;
            socket.write('said after the event');
            socket.destroy();
          });
          socket.connect({ host: 'a.name', port: server.port, lookup, ...options });
          await closed;
        }
        await settle();
        assert.equal(told, TIMES);
        assert.equal(server.accepted, 0);
      });
    }

test("a socket that is destroyed in its own 'lookup' function does not go there", async (t) => {
  const server = await countingServer(t, repnet);
  for (const options of Object.values(MODES)) {
    let socket;
    const lookup = (_host, { all }, done) => {
      setImmediate(() => {
        socket.destroy();
        if (all) done(null, [{ address: '127.0.0.1', family: 4 }]);
        else done(null, '127.0.0.1', 4);
      });
    };
    socket = repnet.connect({ host: 'a.name', port: server.port, lookup, ...options });
    await new Promise((resolve) => socket.on('error', () => {}).once('close', resolve));
  }
  await settle();
  assert.equal(server.accepted, 0);
});
