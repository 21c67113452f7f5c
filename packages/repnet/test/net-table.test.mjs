/**
 * Everything that Node documents of `net`, row by row (lib/net-rows): each row observes one property, event, argument or
 * overload by what an application can tell of it, with Node's net and with repnet in every mode, and sees the same. A row's
 * name begins with the documented names that it is about. Rows are given `on`: the module (`on.api`), and servers and
 * clients that are closed afterwards.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { unlinkSync } from 'node:fs';
import net from 'node:net';
import { test } from 'node:test';
import { forgetPeers } from '../dist/client/peers.js';
import repnet from '../dist/index.js';
import { CONTEXTS, EVENTS } from './lib/net-rows/events.mjs';
import { MODULE, SERVER } from './lib/net-rows/module.mjs';
import { CONSTRUCTOR, METHODS, PROPERTIES } from './lib/net-rows/socket.mjs';
import { dial, HOST, path, serve } from './lib/observe.mjs';
import { refusingPort } from './lib/refusing-port.mjs';
import { until } from './lib/support.mjs';

const ROWS = { ...MODULE, ...SERVER, ...CONSTRUCTOR, ...PROPERTIES, ...METHODS, ...EVENTS, ...CONTEXTS };

/** `joins`: both connections of a flow are in use before a row goes on. */
const MODES = {
  'plain, switched off': { replicate: false },
  'plain, since the server is told to be': { replicate: 'flow', peer: 'plain' },
  RepFlow: { replicate: 'flow', peer: 'repnet', joins: true },
  'RepFlow to a server that is not known': { replicate: 'flow', peer: 'auto', joins: true },
  'RepFlow, hedged': { replicate: 'flow', peer: 'repnet', copyDelay: 1 },
  RepSYN: { replicate: 'syn', peer: 'repnet' },
};

const PATHS = 2;

/** What a row has to observe with. */
function observer(api, joins, cleanUp) {
  const on = { api, cleanUp, path };
  on.serve = (options, onConnection, ...listen) => serve(on, options, onConnection, ...listen);
  on.dial = (...args) => dial(on, ...args);
  /** What each of two sockets gets of the other. */
  on.exchange = async (one, other) => {
    const texts = [one, other].map((socket) => once(socket, 'data'));
    one.write('from one');
    other.write('from the other');
    return (await Promise.all(texts)).map(String);
  };
  /** Listens, and is closed when the row is over. */
  on.listen = (server, ...args) => {
    cleanUp.push(() => server.listening && server.close());
    return server.listen(...(args.length > 0 ? args : [0, HOST]));
  };
  /** All that is read to the end. */
  on.text = async (socket) => {
    const chunks = [];
    socket.on('data', (chunk) => chunks.push(chunk));
    await once(socket, 'end');
    return Buffer.concat(chunks);
  };
  on.received = async (socket, bytes) => {
    socket.resume();
    await until(() => socket.bytesRead >= bytes);
  };
  on.settled = async (...sockets) => {
    if (joins) await until(() => sockets.every((socket) => repnet.info(socket).paired));
  };
  /** A client that is connected, and the server's socket of it. */
  on.pair = async ({ server: serverOptions = {}, client: clientOptions = {} } = {}) => {
    const served = await on.serve(serverOptions, (socket) => socket.on('error', () => {}));
    const client = on.dial({ port: served.port, host: HOST, ...clientOptions });
    await once(client, 'connect');
    const accepted = await served.acceptedFrom(client);
    await on.settled(client, accepted);
    return { ...served, client, accepted };
  };
  /** A port of which nobody listens, nor on its successor. */
  on.unused = () => refusingPort({ after: (undo) => cleanUp.push(undo) });
  return on;
}

async function observe(api, row, joins) {
  const cleanUp = [];
  try {
    return await row(observer(api, joins, cleanUp));
  } finally {
    for (const undo of cleanUp) undo();
    for (let n = 0; n < PATHS; n++)
      try {
        unlinkSync(path(n));
      } catch {
        // the server has removed it, or there was none
      }
  }
}

const { defaults } = repnet;
for (const [name, row] of Object.entries(ROWS))
  test(name, async (t) => {
    const before = { ...defaults };
    t.after(() => Object.assign(defaults, before));
    const expected = await observe(net, row, false);
    for (const [mode, { joins = false, ...options }] of Object.entries(MODES)) {
      await t.test(mode, async () => {
        Object.assign(defaults, before, options);
        forgetPeers();
        const seen = await observe(repnet, row, joins);
        assert.deepEqual(seen, expected);
      });
    }
  });

/** Public names that a class or module of this version of Node has. */
const namesOf = (object) => Object.getOwnPropertyNames(object).filter((name) => /^[a-z]/i.test(name));
const hasRow = (name) => Object.keys(ROWS).some((row) => new RegExp(`(^|[ ,])${name}\\b`).test(row));

test('every public name of net, net.Socket and net.Server has a row', () => {
  const names = [
    ...namesOf(net).map((name) => `net.${name}`),
    ...namesOf(net.Socket.prototype).map((name) => `socket.${name}`),
    ...namesOf(net.Server.prototype).map((name) => `server.${name}`),
  ].filter((name) => !/\.(constructor|prototype)$/.test(name));
  assert.deepEqual(
    names.filter((name) => !hasRow(name)),
    [],
  );
});
