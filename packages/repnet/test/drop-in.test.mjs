/**
 * repnet in place of net: each behaviour is observed with Node's net and with repnet, replication off, RepSYN and RepFlow,
 * and has to be the same. What is observed is what an application can tell: events in order, values, error codes.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmodSync, statSync, unlinkSync } from 'node:fs';
import net from 'node:net';
import { test } from 'node:test';
import repnet from '../dist/index.js';
import { dial, echo, echoing, failure, HOST, path, record, serve, thrown } from './lib/observe.mjs';
import { refusingPort } from './lib/refusing-port.mjs';
import { settle, ticks } from './lib/support.mjs';

/** name: what is observed. */
const BEHAVIOURS = {
  'every form of connect': async (on) => {
    const { port } = await serve(on, {}, echoing, 0);
    const { api } = on;
    const called = [];
    const forms = [
      () => api.connect(port, () => called.push(0)),
      () => api.connect(port, HOST, () => called.push(1)),
      () => api.connect(String(port), HOST),
      () => api.connect({ port }, () => called.push(3)),
      () => api.connect({ port, host: HOST, noDelay: true, keepAlive: true }),
      () => api.createConnection(port, HOST),
      () => api.createConnection({ port, host: HOST, family: 4, localAddress: HOST }),
      () => new api.Socket().connect(port, HOST, () => called.push(7)),
      () => new api.Socket({ allowHalfOpen: true }).connect({ port, host: HOST }),
      () => new api.Stream().connect(port),
      () =>
        api.connect({
          port,
          host: 'a.name',
          lookup: (_, options, done) => done(null, options.all ? [{ address: HOST, family: 4 }] : HOST, 4),
        }),
    ];
    const echoes = [];
    for (const form of forms) {
      const socket = form();
      echoes.push(await echo(socket));
      socket.destroy();
    }
    return { echoes, called };
  },
  'every form of listen': async (on) => {
    const seen = [];
    let n = 0;
    const handle = (await serve({ api: net, cleanUp: on.cleanUp }, {}, echoing)).server._handle;
    for (const form of [
      [],
      [0],
      [0, HOST],
      [0, HOST, 10],
      [undefined, HOST],
      [{ port: 0, host: HOST }],
      [{ port: 0, host: HOST, exclusive: true, backlog: 5 }],
      [{ port: 0, host: '::', ipv6Only: true }],
      [path(n++)],
      [{ path: path(n++), readableAll: true }],
      [{ _handle: handle }],
    ]) {
      let called = 0;
      const server = on.api.createServer(echoing);
      on.cleanUp.push(() => server.listening && server.close());
      server.listen(...form, () => called++);
      await once(server, 'listening');
      const address = server.address();
      if (typeof address === 'string') {
        seen.push(statSync(address).mode);
        // Readable by all, a socket need not be writable by its own user, who may only connect to it then if that is root.
        chmodSync(address, 0o600);
      }
      const socket = dial(
        on,
        typeof address === 'string'
          ? address
          : { port: address.port, host: address.family === 'IPv6' ? '::1' : HOST },
      );
      seen.push([called, typeof address, address.family, address.address, await echo(socket)]);
      const closed = once(server, 'close');
      server.close();
      socket.destroy();
      await closed;
      seen.push(server.address());
    }
    return seen;
  },
  'listening twice, on a bad port, and closing what does not listen': async (on) => {
    const { server } = await serve(on, {});
    const again = thrown(() => server.listen(0));
    const bad = thrown(() => on.api.createServer().listen(70_000));
    const none = thrown(() => on.api.createServer().listen({}));
    const error = await new Promise((resolve) => on.api.createServer().close((e) => resolve(e?.code)));
    return { again, bad, none, error };
  },
  'arguments of connect that are refused': async ({ api }) => [
    thrown(() => api.connect()),
    thrown(() => api.connect({ port: 99_999 })),
    thrown(() => api.connect({ port: 'a' })),
    thrown(() => api.connect({ port: 1, host: HOST, localAddress: 'no address' })),
    thrown(() => api.connect({ port: 1, host: HOST, localPort: 'a' })),
    thrown(() => api.connect({ port: 1, host: HOST, autoSelectFamily: 'yes' })),
    thrown(() => api.connect({ port: 1, host: HOST, autoSelectFamilyAttemptTimeout: 0 })),
    process.versions.node > '24' && thrown(() => api.connect({ port: 1, host: [HOST] })),
  ],
  'nobody listens': async (on) => {
    const log = [];
    const socket = dial(on, refusingPort({ after: (undo) => on.cleanUp.push(undo) }), HOST);
    record(socket, ['connect', 'error', 'end', 'close'], log);
    const seen = await failure(socket);
    await settle();
    return { seen, log, destroyed: socket.destroyed, connecting: socket.connecting };
  },
  'a name that does not resolve': async (on) => {
    const lookup = (_, __, done) =>
      setImmediate(done, Object.assign(new Error('no such name'), { code: 'ENOTFOUND' }));
    const log = [];
    const socket = dial(on, { port: 1, host: 'a.name', lookup });
    record(socket, ['lookup', 'connect', 'error', 'close'], log);
    const seen = await failure(socket);
    await settle();
    return { seen, log };
  },
  'events of a whole exchange, both sides': async (on) => {
    const [client, server] = [[], []];
    const names = ['connect', 'ready', 'end', 'finish', 'error', 'close'];
    let served;
    const { port } = await serve(on, {}, (socket) => {
      record(socket, names, server);
      served = once(socket, 'close');
      socket.on('data', () => socket.end('reply'));
    });
    const socket = dial(on, port, HOST);
    record(socket, names, client);
    socket.resume().write('request');
    await once(socket, 'close');
    await served;
    await settle();
    return { client, server: server.sort() };
  },
  'allowHalfOpen on both sides: each end by itself': async (on) => {
    const log = [];
    const { port } = await serve(on, { allowHalfOpen: true }, (socket) => {
      let request = '';
      socket.setEncoding('utf8').on('data', (text) => (request += text));
      socket.on('end', () => settle().then(() => socket.end(`you said ${request}`)));
    });
    const socket = dial(on, { port, host: HOST, allowHalfOpen: true });
    socket.setEncoding('utf8').end('é and à');
    record(socket, ['finish', 'end', 'close'], log);
    let reply = '';
    socket.on('data', (text) => {
      log.push(socket.readyState);
      reply += text;
    });
    await once(socket, 'close');
    return { reply, log };
  },
  'pause and resume': async (on) => {
    const { port } = await serve(on, {}, (socket) => socket.write('hello'));
    const socket = dial(on, port, HOST);
    const got = [];
    socket.on('data', (chunk) => got.push(chunk.toString())).pause();
    await once(socket, 'connect');
    await settle();
    const before = got.join('');
    socket.resume();
    await once(socket, 'data');
    return { before, after: got.join(''), paused: socket.isPaused() };
  },
  pauseOnConnect: async (on) => {
    const { port, acceptedFrom } = await serve(on, { pauseOnConnect: true });
    const socket = dial(on, port, HOST);
    socket.write('x');
    await once(socket, 'connect');
    const accepted = await acceptedFrom(socket);
    await settle();
    const got = [];
    accepted.on('data', (chunk) => got.push(chunk.toString())).pause();
    await settle();
    const before = [got.join(''), accepted.bytesRead];
    const data = once(accepted, 'data');
    accepted.resume();
    await data;
    return { before, after: [got.join(''), accepted.bytesRead] };
  },
  'back-pressure: write says false, and drain follows': async (on) => {
    const { port, acceptedFrom } = await serve(on, {}, (socket) => socket.on('error', () => {}).pause());
    const socket = dial(on, port, HOST);
    await once(socket, 'connect');
    const accepted = await acceptedFrom(socket);
    const more = socket.write(Buffer.alloc(1 << 20));
    const drained = once(socket, 'drain');
    for (let i = 0; i < 32; i++) socket.write(Buffer.alloc(1 << 20));
    await settle();
    const needed = socket.writableNeedDrain;
    accepted.resume();
    await drained;
    return { more, needed, drained: socket.writableLength };
  },
  'the callbacks of writes, in order': async (on) => {
    const { port } = await serve(on, {}, (socket) => socket.resume().on('error', () => {}));
    const socket = dial(on, port, HOST);
    const log = [];
    for (const n of [1, 2, 3]) socket.write(`${n}`, () => log.push(n));
    socket.cork();
    socket.write('4', () => log.push(4));
    socket.write('5', 'latin1', () => log.push(5));
    socket.uncork();
    await new Promise((resolve) => socket.end('6', () => resolve(log.push('end'))));
    const afterEnd = await new Promise((resolve) =>
      socket.on('error', () => {}).write('7', (error) => resolve(error.code)),
    );
    return { log, afterEnd, bytes: socket.bytesWritten };
  },
  'destroySoon sends what was written': async (on) => {
    let bytes = 0;
    let arrived;
    const closed = new Promise((resolve) => (arrived = resolve));
    const { port } = await serve(on, {}, (socket) =>
      socket.on('data', (chunk) => (bytes += chunk.length)).on('close', arrived),
    );
    const socket = dial(on, port, HOST);
    await once(socket, 'connect');
    socket.write(Buffer.alloc(300_000));
    socket.destroySoon();
    await once(socket, 'close');
    await closed;
    return bytes;
  },
  resetAndDestroy: async (on) => {
    const { port, acceptedFrom } = await serve(on, {}, echoing);
    const socket = dial(on, port, HOST);
    await echo(socket);
    const accepted = await acceptedFrom(socket);
    const log = [];
    record(accepted, ['end', 'error', 'close'], log);
    const failed = failure(accepted);
    record(socket, ['end', 'error', 'close'], log, 'own ');
    socket.resetAndDestroy();
    const { code } = await failed;
    await settle();
    return { code, log: log.sort() };
  },
  'destroy with an error, destroy while connecting': async (on) => {
    const { port } = await serve(on, {}, echoing);
    const log = [];
    for (const args of [[new Error('mine')], []]) {
      const socket = dial(on, port, HOST);
      record(socket, ['connect', 'error', 'close'], log);
      socket.destroy(...args);
      await once(socket, 'close').catch(() => {});
      await settle();
      log.push(socket.destroyed, socket.connecting, socket.readyState);
    }
    return log;
  },
  'timeouts: by setTimeout, by option, and none while bytes move': async (on) => {
    const { port } = await serve(on, {}, echoing);
    const socket = dial(on, { port, host: HOST });
    await echo(socket);
    socket.setTimeout(40);
    await once(socket, 'timeout');
    const { timeout, destroyed } = socket;
    const optional = dial(on, { port, host: HOST, timeout: 40 });
    await once(optional, 'timeout');
    let idle = 0;
    const busy = dial(on, port, HOST);
    busy.setTimeout(400, () => idle++);
    // Of a process that stood still it says nothing.
    for (let longest = 400; longest > 200; ) {
      idle = longest = 0;
      for (let i = 0, last = Date.now(); i < 12; i++) {
        await echo(busy);
        await ticks(1, 50);
        longest = Math.max(longest, Date.now() - last);
        last = Date.now();
      }
    }
    return { timeout, destroyed, option: optional.timeout, idle, off: busy.setTimeout(0).timeout };
  },
  'AbortSignal for connect and listen': async (on) => {
    const { port } = await serve(on, {}, echoing);
    const seen = [];
    const before = dial(on, { port, host: HOST, signal: AbortSignal.abort() });
    seen.push((await failure(before)).name);
    const control = new AbortController();
    const during = dial(on, { port, host: HOST, signal: control.signal });
    await echo(during);
    control.abort();
    seen.push((await failure(during)).name, during.destroyed);
    const listening = new AbortController();
    const { server } = await serve(on, {}, undefined, { port: 0, host: HOST, signal: listening.signal });
    const closed = once(server, 'close');
    listening.abort();
    await closed;
    seen.push(server.listening);
    return seen;
  },
  'autoSelectFamily goes on to the address that answers': async (on) => {
    const { port } = await serve(on, {}, echoing);
    const lookup = (_, options, done) => {
      const all = [
        { address: '::1', family: 6 },
        { address: HOST, family: 4 },
      ];
      return options.all ? done(null, all) : done(null, HOST, 4);
    };
    const log = [];
    const socket = dial(on, { port, host: 'a.name', lookup, autoSelectFamily: true });
    socket.on('connectionAttempt', (address, to) => log.push(`attempt ${address} ${to === port}`));
    socket.on('connectionAttemptFailed', (address) => log.push(`failed ${address}`));
    const answer = await echo(socket);
    const attempted = socket.autoSelectFamilyAttemptedAddresses.map((entry) => entry.replace(`:${port}`, ''));
    return { answer, log, attempted, remote: socket.remoteAddress };
  },
  'addresses and counters': async (on) => {
    const { port, acceptedFrom } = await serve(on, {}, echoing);
    const socket = dial(on, port, HOST);
    const before = [
      socket.remoteAddress,
      socket.localPort,
      socket.pending,
      socket.connecting,
      socket.readyState,
    ];
    await echo(socket, 'twelve bytes');
    const accepted = await acceptedFrom(socket);
    await settle();
    const { remoteAddress, remotePort, remoteFamily, localAddress, localFamily, bytesRead, bytesWritten } =
      socket;
    const facing = socket.localPort === accepted.remotePort && accepted.localPort === remotePort;
    const address = socket.address();
    const told = address.port === socket.localPort && [address.address, address.family];
    const open = [socket.pending, socket.connecting, socket.readyState, accepted.readyState];
    socket.destroy();
    await once(socket, 'close');
    const after = [socket.readyState, socket.bytesRead, socket.bytesWritten, socket.destroyed];
    const here = {
      remoteAddress,
      right: remotePort === port,
      remoteFamily,
      localAddress,
      localFamily,
      bytesRead,
      bytesWritten,
    };
    return {
      before,
      here,
      facing,
      told,
      open,
      after,
      there: [accepted.bytesRead, accepted.bytesWritten, accepted.remoteAddress],
    };
  },
  'getConnections counts connections of the application': async (on) => {
    const { server, port } = await serve(on, {}, echoing);
    const clients = [0, 1, 2].map(() => dial(on, port, HOST));
    await Promise.all(clients.map((socket) => echo(socket)));
    const count = () => new Promise((resolve) => server.getConnections((_, n) => resolve(n)));
    const three = await count();
    clients[0].end();
    await once(clients[0].resume(), 'close');
    await settle();
    return [three, await count(), server.connections];
  },
  'maxConnections drops what is over it': async (on) => {
    const { server, port } = await serve(on, {}, echoing);
    server.maxConnections = 1;
    const drops = [];
    server.on('drop', (info) =>
      drops.push(Object.keys(info).sort(), info.localPort === port, info.remoteAddress),
    );
    const first = dial(on, port, HOST);
    await echo(first);
    const second = dial(on, port, HOST).on('error', () => {});
    second.resume().write('x');
    await once(second, 'close');
    await settle();
    return { drops, dropMaxConnection: server.dropMaxConnection, read: second.bytesRead };
  },
  'BlockList of a server and of a client': async (on) => {
    const blockList = new on.api.BlockList();
    blockList.addAddress(HOST);
    const seen = [];
    const { server, port } = await serve(on, { blockList }, () => seen.push('connection'));
    if (server.blockList === undefined) return 'not in this Node';
    const refused = dial(on, port, HOST).on('error', () => {});
    await once(refused.resume(), 'close');
    await settle();
    const { port: open } = await serve(on, {}, echoing);
    return { seen, client: (await failure(dial(on, { port: open, host: HOST, blockList }))).code };
  },
  'closing a server waits for its connections': async (on) => {
    const log = [];
    const { server, port } = await serve(on, {}, (socket) =>
      socket.resume().on('close', () => log.push('socket')),
    );
    const socket = dial(on, port, HOST);
    await once(socket, 'connect');
    await settle();
    const closed = new Promise((resolve) => server.close(() => resolve(log.push('server'))));
    log.push(server.listening);
    socket.end();
    await closed;
    await settle();
    return log;
  },
  'Symbol.asyncDispose': async (on) => {
    const { server } = await serve(on, {});
    await server[Symbol.asyncDispose]();
    return server.listening;
  },
  'instanceof, and what sort of object it is': async (on) => {
    const { server, port, acceptedFrom } = await serve(on, {}, echoing);
    const socket = dial(on, port, HOST);
    await echo(socket);
    const accepted = await acceptedFrom(socket);
    return [socket, accepted]
      .map((each) => [
        each instanceof net.Socket,
        each instanceof on.api.Socket,
        typeof each.setNoDelay().ref().unref().setKeepAlive(true, 1_000).pipe,
      ])
      .concat([[server instanceof net.Server, server instanceof on.api.Server, server.ref() === server]]);
  },
  'async iteration and pipe': async (on) => {
    const { port } = await serve(on, {}, (socket) => socket.on('error', () => {}).pipe(socket));
    const socket = dial(on, port, HOST);
    socket.end('some bytes');
    let text = '';
    for await (const chunk of socket) text += chunk;
    return text;
  },
  'one socket object connects again': async (on) => {
    const { port } = await serve(on, {}, echoing);
    const socket = dial(on, port, HOST);
    const first = await echo(socket, 'one');
    socket.destroy();
    await once(socket, 'close');
    socket.connect(port, HOST);
    return [first, await echo(socket, 'two'), socket.destroyed];
  },
  'onread into a buffer of the application': async (on) => {
    const { port } = await serve(on, {}, (socket) => socket.on('error', () => {}).write('into the buffer'));
    const got = [];
    const socket = dial(on, {
      port,
      host: HOST,
      onread: {
        buffer: Buffer.alloc(64),
        callback: (n, buffer) => got.push(buffer.toString('latin1', 0, n)) > 0,
      },
    });
    await once(socket, 'connect');
    for (let i = 0; i < 100 && got.join('').length < 15; i++) await settle();
    return got.join('');
  },
};

/** What a race decides: all but these is as with net. */
const RACED = { 'autoSelectFamily goes on to the address that answers': 'log' };

const { defaults } = repnet;
async function observe(api, behaviour) {
  const cleanUp = [() => {}];
  try {
    return await behaviour({ api, cleanUp });
  } finally {
    for (const undo of cleanUp) undo();
    for (let n = 0; n < 2; n++)
      try {
        unlinkSync(path(n));
      } catch {
        // the server has removed it
      }
  }
}

for (const [name, behaviour] of Object.entries(BEHAVIOURS))
  test(name, async (t) => {
    const before = { ...defaults };
    t.after(() => Object.assign(defaults, before));
    let expected;
    await t.test('net', async () => {
      expected = await observe(net, behaviour);
    });
    for (const mode of [{ replicate: false }, { replicate: 'syn' }, { replicate: 'flow' }])
      for (const peer of mode.replicate ? ['repnet', 'auto'] : ['auto'])
        await t.test(JSON.stringify({ ...mode, peer }), async () => {
          Object.assign(defaults, before, mode, { peer });
          const raced = mode.replicate === 'syn' ? RACED[name] : undefined;
          const seen = await observe(repnet, behaviour);
          if (raced !== undefined) seen[raced] = expected[raced];
          assert.deepEqual(seen, expected);
        });
  });
