/**
 * What Node documents of `net`, row by row: each observes one property, event, argument or overload by what an application
 * can tell of it. A row's name begins with the documented names that it is about, by which ../net-table.test.mjs finds
 * what has no row. Rows are given `on`: the module (`on.api`), and servers and clients that are closed afterwards.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import net from 'node:net';
import { PerformanceObserver } from 'node:perf_hooks';
import { HOST, record, thrown } from './observe.mjs';
import { ticks, until } from './support.mjs';

const nobody = HOST;
const quiet = (socket) => socket.on('error', () => {});
const code = (error) => error?.code ?? error?.name ?? error;
/** A resolver that knows one name, of these addresses. */
const resolving =
  (...addresses) =>
  (_host, options, done) => {
    const all = addresses.map((address) => ({ address, family: net.isIP(address) }));
    process.nextTick(done, null, ...(options.all ? [all] : [all[0].address, all[0].family]));
  };

export const MODULE = {
  'net.connect, net.createConnection': async (on) => {
    const { api } = on;
    const { port } = await on.serve({}, (socket) => quiet(socket).end('bye'));
    const seen = [api.connect === api.createConnection, api.connect.length];
    for (const args of [[port], [String(port), HOST], [port, HOST], [{ port, host: HOST }], [{ port }]])
      for (const listener of [[], [() => seen.push('listener')]]) {
        const socket = on.dial(...args, ...listener);
        seen.push(socket instanceof api.Socket, socket.connecting, (await on.text(socket)).toString());
      }
    return seen;
  },
  'net.connect: what is refused at once': ({ api }) =>
    [
      [],
      [{}],
      [null],
      [undefined],
      [{ port: -1 }],
      [{ port: 65536 }],
      [{ port: 'no' }],
      [{ port: null }],
      [''],
    ]
      .concat([
        [{ port: 1, host: 1 }],
        [{ port: 1, host: nobody, localAddress: 'no address' }],
        [{ port: 1, host: nobody, localPort: 'no port' }],
        [{ port: 1, host: 'a.name', lookup: 'no function' }],
        [{ port: 1, host: 'a.name', hints: -1 }],
        [{ port: 1, host: 'a.name', autoSelectFamily: 'no' }],
        [{ port: 1, host: nobody, autoSelectFamilyAttemptTimeout: 'no' }],
        [{ path: 1 }],
        [{ port: 1, host: nobody, signal: 'no signal' }],
        [{ port: 1, host: nobody, objectMode: true }],
      ])
      .map((args) => thrown(() => quiet(api.connect(...args)).destroy())),
  'net.createServer, net.Server': async ({ api }) => {
    const listener = () => {};
    const forms = [[], [listener], [{}], [{}, listener], [null, listener], [undefined, listener]];
    return forms.flatMap((args) =>
      [() => api.createServer(...args), () => new api.Server(...args), () => api.Server(...args)].map(
        (make) => {
          const server = make();
          return [
            server instanceof api.Server,
            server instanceof net.Server,
            server.listenerCount('connection'),
          ];
        },
      ),
    );
  },
  'net.createServer: what is refused at once': ({ api }) =>
    [
      [1],
      ['options'],
      [{ allowHalfOpen: 1 }],
      [{ highWaterMark: -1 }],
      [{ blockList: 1 }],
      [{ keepAlive: 1 }],
    ].map((args) => thrown(() => api.createServer(...args))),
  'net.Socket, net.Stream': ({ api }) => [
    api.Stream === api.Socket,
    api.Socket.length,
    api.Socket.name,
    new api.Socket() instanceof net.Socket,
    api.Socket() instanceof api.Socket,
    api.Socket.call(Object.create(api.Socket.prototype)) === undefined,
    Object.prototype.toString.call(new api.Socket()),
    new api.Socket().constructor === api.Socket,
  ],
  'net.isIP, net.isIPv4, net.isIPv6': ({ api }) =>
    ['127.0.0.1', '::1', 'no', '', undefined].map((text) => [
      api.isIP(text),
      api.isIPv4(text),
      api.isIPv6(text),
    ]),
  'net.getDefaultAutoSelectFamily, net.setDefaultAutoSelectFamily': ({ api }) => {
    const before = api.getDefaultAutoSelectFamily();
    api.setDefaultAutoSelectFamily(!before);
    const seen = [
      before,
      net.getDefaultAutoSelectFamily(),
      thrown(() => api.setDefaultAutoSelectFamily('no')),
    ];
    api.setDefaultAutoSelectFamily(before);
    return seen;
  },
  'net.getDefaultAutoSelectFamilyAttemptTimeout, net.setDefaultAutoSelectFamilyAttemptTimeout': ({ api }) => {
    const before = api.getDefaultAutoSelectFamilyAttemptTimeout();
    api.setDefaultAutoSelectFamilyAttemptTimeout(before + 1);
    const seen = [before, net.getDefaultAutoSelectFamilyAttemptTimeout()];
    api.setDefaultAutoSelectFamilyAttemptTimeout(before);
    return seen;
  },
  'net.BlockList, net.SocketAddress': ({ api }) => [
    api.BlockList === net.BlockList,
    api.SocketAddress === net.SocketAddress,
  ],
  'net.BoundSocket': ({ api }) => api.BoundSocket === net.BoundSocket,
  'the shape of classes and methods': ({ api }) =>
    [
      [net.Socket.prototype, api.Socket.prototype],
      [net.Server.prototype, api.Server.prototype],
    ].map(([known, own]) =>
      Object.getOwnPropertyNames(known)
        .filter((name) => !name.startsWith('_') && name !== 'constructor')
        .map((name) => {
          const descriptor = Object.getOwnPropertyDescriptor(known, name);
          if (descriptor.get !== undefined) return [name, name in own];
          const { length } = own[name];
          return [name, typeof own[name], length];
        }),
    ),
};

export const SERVER = {
  'server.address, server.listening': async (on) => {
    const server = on.api.createServer();
    const seen = [server.address(), server.listening];
    on.listen(server);
    await once(server, 'listening');
    const { address, family, port } = server.address();
    seen.push(address, family, port > 0, Object.keys(server.address()), server.listening);
    server.close();
    seen.push(server.address(), server.listening);
    return seen;
  },
  "server.close, server 'close'": async (on) => {
    const { server, client, accepted } = await on.pair();
    const log = [];
    server.on('close', (...args) => log.push(['close', args.length]));
    const returned = server.close((...args) => log.push(['callback', ...args]));
    const again = new Promise((resolve) => server.close((error) => resolve(code(error))));
    log.push(returned === server, server.listening, server.address());
    client.destroy();
    if (!accepted.destroyed) await once(accepted, 'close');
    const why = await again;
    await until(() => log.length === 5);
    return [why, [...log], thrown(() => server.close()), thrown(() => on.api.createServer().close())];
  },
  'server.close of what never listened': async ({ api }) =>
    code(await new Promise((resolve) => api.createServer().close(resolve))),
  'server[Symbol.asyncDispose]': async (on) => {
    const { server } = await on.serve();
    await server[Symbol.asyncDispose]();
    return [server.listening, await on.api.createServer()[Symbol.asyncDispose]()];
  },
  'server.getConnections, server.connections': async (on) => {
    const { server, client, accepted } = await on.pair();
    const count = () => new Promise((resolve) => server.getConnections((...args) => resolve(args)));
    const seen = [await count(), server.getConnections(() => {}) === server, server.connections];
    client.destroy();
    if (!accepted.destroyed) await once(accepted, 'close');
    return [...seen, await count()];
  },
  "server.listen, server 'listening'": async (on) => {
    const seen = [];
    for (const [n, args] of [
      [],
      [0],
      [0, HOST],
      [0, HOST, 10],
      ['0', HOST],
      [undefined],
      [null],
      [{ port: 0, host: HOST }],
      [{ port: 0, host: HOST, backlog: 5, exclusive: true }],
      [{ host: HOST, port: '0' }],
      [{ port: 0, host: '::', ipv6Only: true }],
      [on.path(0)],
      [{ path: on.path(1), readableAll: true, writableAll: true }],
    ].entries()) {
      const server = on.api.createServer();
      let told;
      server.on('listening', function (...given) {
        told = [this === server, given.length];
      });
      const called = new Promise((resolve) => {
        const returned = on.listen(server, ...args, () => resolve('called'));
        seen.push(returned === server, server.listening);
      });
      await called;
      const address = server.address();
      seen.push(
        n,
        told,
        server.listening,
        address.address ?? 'a path',
        address.family,
        'port' in Object(address),
      );
      server.close();
    }
    return seen;
  },
  'server.listen: what is refused': async (on) => {
    const { server } = await on.serve();
    const seen = [thrown(() => server.listen(0))];
    for (const args of [
      [-1],
      [65536],
      ['no', 'path', 'here'],
      [{}],
      [{ port: 'no' }],
      [true],
      [{ path: 1 }],
      [{ fd: -1 }],
    ])
      seen.push(
        thrown(() =>
          on.listen(
            on.api.createServer().on('error', () => {}),
            ...args,
          ),
        ),
      );
    return seen;
  },
  'server.listen: an aborted signal closes': async (on) => {
    const seen = [];
    for (const early of [true, false]) {
      const controller = new AbortController();
      if (early) controller.abort();
      const server = on.api.createServer();
      const closed = once(server, 'close');
      on.listen(server, { port: 0, host: HOST, signal: controller.signal });
      controller.abort();
      await closed;
      seen.push(server.listening, server.address() !== null);
    }
    return seen;
  },
  "server 'error'": async (on) => {
    const { port } = await on.serve();
    const server = on.api.createServer();
    on.listen(server, port, HOST);
    const [error] = await once(server, 'error');
    const { message } = error;
    return [
      [error.code, error.syscall, error.address, error.port === port, Object.keys(error)],
      [message.replaceAll(port, 'P'), server.listening, server.address()],
    ];
  },
  "server 'connection'": async (on) => {
    const told = [];
    const { server, port } = await on.serve({}, undefined);
    server.on('connection', function (...args) {
      const [socket] = args;
      told.push([this === server, args.length, socket.server === server, socket instanceof on.api.Socket]);
      told.push([
        socket.connecting,
        socket.pending,
        socket.readyState,
        socket.bytesRead,
        socket.bytesWritten,
      ]);
      told.push([socket.allowHalfOpen, socket.readableFlowing, socket.timeout, socket.listenerCount('end')]);
      quiet(socket).end();
    });
    await on.text(on.dial({ port, host: HOST }));
    return told;
  },
  "server.maxConnections, server 'drop'": async (on) => {
    const { server, port } = await on.serve({}, quiet);
    server.maxConnections = 1;
    const [first] = [on.dial({ port, host: HOST }), await once(server, 'connection')];
    const dropped = once(server, 'drop');
    const second = quiet(on.dial({ port, host: HOST }));
    const [{ localPort, ...rest }] = await dropped;
    if (!second.destroyed) await once(second.resume(), 'close');
    return [
      [localPort === port, rest.localAddress, rest.localFamily, rest.remoteAddress, rest.remoteFamily],
      [typeof rest.remotePort, server.maxConnections, first.destroyed],
    ];
  },
  'server.dropMaxConnection': async (on) => {
    const { server, port } = await on.pair();
    Object.assign(server, { maxConnections: 1, dropMaxConnection: true });
    const client = quiet(on.dial({ port, host: HOST })).resume();
    await once(client, 'close');
    return [server.maxConnections, server.dropMaxConnection];
  },
  'server.ref, server.unref': async (on) => {
    const { server } = await on.serve();
    return [server.unref() === server, server.ref() === server, on.api.createServer().unref().listening];
  },
  'createServer({ allowHalfOpen })': async (on) => {
    const { client, accepted } = await on.pair({ server: { allowHalfOpen: true } });
    client.resume().end();
    await once(accepted.resume(), 'end');
    const seen = [accepted.allowHalfOpen, accepted.readyState, accepted.writable, accepted.readable];
    accepted.end('late');
    await once(accepted, 'close');
    return seen;
  },
  'createServer({ highWaterMark })': async (on) => {
    const { accepted } = await on.pair({ server: { highWaterMark: 1000 } });
    return [accepted.readableHighWaterMark, accepted.writableHighWaterMark];
  },
  'createServer({ pauseOnConnect })': async (on) => {
    const { client, accepted } = await on.pair({ server: { pauseOnConnect: true } });
    const seen = [accepted.isPaused(), accepted.readableFlowing, accepted.bytesRead];
    const texts = [];
    accepted.on('data', (chunk) => texts.push(String(chunk)));
    await new Promise((resolve) => client.write('hello', resolve));
    await ticks(3);
    seen.push([...texts], accepted.bytesRead, accepted.readableLength);
    accepted.resume();
    await until(() => texts.length > 0);
    return [...seen, texts, accepted.bytesRead];
  },
  'createServer({ noDelay, keepAlive, keepAliveInitialDelay })': async (on) => {
    const options = { noDelay: true, keepAlive: true, keepAliveInitialDelay: 5_000 };
    const { server, client, accepted } = await on.pair({ server: options });
    return [
      server.noDelay,
      server.keepAlive,
      server.keepAliveInitialDelay,
      await on.exchange(client, accepted),
    ];
  },
  'createServer({ blockList })': async (on) => {
    const blockList = new net.BlockList();
    blockList.addAddress(HOST);
    const { server, port } = await on.serve({ blockList }, quiet);
    // Where this version knows no such option, the connection is accepted.
    const accepted = once(server, 'connection').then(() => 'accepted');
    const client = quiet(on.dial({ port, host: HOST })).resume();
    return Promise.race([once(client, 'close').then(() => 'blocked'), accepted]);
  },
};

export const CONSTRUCTOR = {
  'new Socket({ allowHalfOpen })': async (on) => {
    const { client, accepted } = await on.pair({ client: { allowHalfOpen: true } });
    accepted.end('bye');
    await once(client.resume(), 'end');
    const seen = [client.allowHalfOpen, client.readyState, client.writable];
    client.end('late');
    await Promise.all([once(client, 'close'), once(accepted.resume(), 'close')]);
    return seen;
  },
  'new Socket({ readable, writable })': async ({ api }) =>
    [{}, { readable: false }, { writable: false }, { readable: true, writable: true }].map((options) => {
      const socket = new api.Socket(options);
      return [socket.readable, socket.writable, socket.readyState];
    }),
  'new Socket({ signal })': async (on) => {
    const { port } = await on.serve({}, quiet);
    const seen = [];
    for (const when of ['before', 'connecting', 'connected', 'closed']) {
      const controller = new AbortController();
      if (when === 'before') controller.abort();
      const socket = new on.api.Socket({ signal: controller.signal });
      const log = [when];
      record(socket, ['connect', 'close'], log);
      socket.on('error', (error) => log.push([error.name, error.code]));
      const closed = once(socket, 'close').catch(() => {});
      const connected = once(socket, 'connect').catch(() => {});
      socket.connect({ port, host: HOST });
      if (when === 'connecting') controller.abort();
      if (when === 'connected') await connected;
      if (when === 'closed') {
        await connected;
        socket.destroy();
      } else controller.abort();
      await closed;
      await ticks(2);
      controller.abort();
      seen.push(log, socket.destroyed);
    }
    return seen;
  },
  'new Socket({ fd })': ({ api }) => {
    const file = openSync('/dev/null', 'r');
    try {
      return [file, -1, 'no'].map((fd) => thrown(() => new api.Socket({ fd })));
    } finally {
      closeSync(file);
    }
  },
  'new Socket({ onread })': async (on) => {
    const { port } = await on.serve({}, (socket) => quiet(socket).end('into the buffer'));
    const buffer = Buffer.alloc(64);
    const got = [];
    const callback = (length, into) => got.push(into === buffer, into.toString('latin1', 0, length));
    const socket = on.dial({ port, host: HOST, onread: { buffer, callback } });
    await once(socket, 'close');
    return [got.filter((each) => typeof each === 'string').join(''), got[0], socket.bytesRead];
  },
  'new Socket({ noDelay, keepAlive, keepAliveInitialDelay })': async (on) => {
    const options = { noDelay: true, keepAlive: true, keepAliveInitialDelay: 5_000 };
    const { client, accepted } = await on.pair({ client: options });
    return on.exchange(client, accepted);
  },
  'new Socket({ highWaterMark })': async (on) => {
    const { client } = await on.pair({ client: { highWaterMark: 500 } });
    return [client.readableHighWaterMark, client.writableHighWaterMark];
  },
  'new Socket({ blockList }): of connect it counts for nothing': async (on) => {
    const { port } = await on.serve({}, (socket) => quiet(socket).end());
    const blockList = new net.BlockList();
    blockList.addAddress(HOST);
    const outcome = (socket) =>
      new Promise((resolve) =>
        socket.once('error', (error) => resolve(code(error))).once('connect', () => resolve('connect')),
      );
    const socket = new on.api.Socket({ blockList });
    const made = outcome(socket);
    socket.connect({ port, host: HOST });
    const other = new on.api.Socket();
    const connected = outcome(other);
    other.connect({ port, host: HOST, blockList });
    const seen = [await made, await connected, await outcome(on.dial({ port, host: HOST, blockList }))];
    for (const each of [socket, other]) each.destroy();
    return seen;
  },
  'new Socket(options): what only connect reads counts for nothing': async (on) => {
    const { port, acceptedFrom } = await on.serve({}, quiet);
    const own = await on.serve({}, quiet);
    let asked = 0;
    const lookup = (host, options, done) => {
      asked++;
      resolving(HOST)(host, options, done);
    };
    const options = {
      localAddress: '127.0.0.5',
      localPort: own.port,
      lookup,
      family: 6,
      hints: 1e9,
      path: '/nowhere',
    };
    const socket = new on.api.Socket({ ...options, host: 'a.name', port: own.port, autoSelectFamily: false });
    on.cleanUp.push(() => socket.destroy());
    socket.connect({ port, host: HOST });
    await once(socket, 'connect');
    const byAddress = (await acceptedFrom(socket)).remoteAddress;
    const second = new on.api.Socket(options);
    on.cleanUp.push(() => second.destroy());
    second.connect({ port, host: 'localhost', family: 4 });
    await once(second, 'connect');
    return [byAddress, (await acceptedFrom(second)).remoteAddress, asked];
  },
  'connect(options): what only the constructor reads counts for nothing': async (on) => {
    const { port } = await on.serve({}, (socket) => quiet(socket).end('bye'));
    const socket = new on.api.Socket();
    on.cleanUp.push(() => socket.destroy());
    const signal = AbortSignal.abort();
    const onread = { buffer: Buffer.alloc(8), callback: () => true };
    const options = {
      signal,
      onread,
      allowHalfOpen: true,
      highWaterMark: 1,
      readable: false,
      timeout: 1,
      fd: -1,
    };
    socket.connect({ port, host: HOST, ...options, handle: {} });
    const text = await on.text(socket);
    return [String(text), socket.allowHalfOpen, socket.readableHighWaterMark > 1, socket.timeout];
  },
};

const snapshot = (socket, port) => ({
  states: [socket.connecting, socket.pending, socket.destroyed, socket.readyState],
  flows: [socket.readable, socket.writable, socket.readableFlowing, socket.isPaused()],
  ends: [socket.readableEnded, socket.writableEnded, socket.writableFinished, socket.closed],
  sizes: [socket.bufferSize, socket.writableLength, socket.bytesRead, socket.bytesWritten, socket.timeout],
  local: [socket.localAddress, typeof socket.localPort, socket.localFamily, Object.keys(socket.address())],
  remote: [socket.remoteAddress, socket.remotePort === port, socket.remoteFamily],
});

export const PROPERTIES = {
  'socket.connecting, socket.pending, socket.destroyed, socket.readyState, socket.bufferSize, socket.bytesRead, socket.bytesWritten, socket.localAddress, socket.localPort, socket.localFamily, socket.remoteAddress, socket.remotePort, socket.remoteFamily, socket.address, socket.timeout: through the life of a client':
    async (on) => {
      const { port } = await on.serve({}, (socket) =>
        quiet(socket).on('data', (chunk) => socket.write(chunk)),
      );
      const socket = new on.api.Socket();
      on.cleanUp.push(() => socket.destroy());
      const seen = [snapshot(socket, port)];
      const look = () => seen.push(snapshot(socket, port));
      socket.connect({ port, host: HOST });
      // Before a connection is established, net knows the addresses of some versions and not of others.
      const { local, ...connecting } = snapshot(socket, port);
      seen.push(connecting);
      socket.write('abc');
      const { local: _, ...written } = snapshot(socket, port);
      seen.push(written);
      await once(socket, 'connect');
      look();
      await on.received(socket, 3);
      look();
      await new Promise((resolve) => socket.write('de', resolve));
      await on.received(socket, 5);
      look();
      socket.destroy();
      look();
      await once(socket, 'close');
      look();
      return seen;
    },
  'socket.connecting, socket.readyState, socket.bufferSize, socket.bytesRead, socket.bytesWritten, socket.address: through the life of an accepted socket':
    async (on) => {
      const { port, client, accepted } = await on.pair();
      const log = [];
      const look = () => {
        const { remote, ...rest } = snapshot(accepted, port);
        const { localPort } = accepted;
        log.push(rest, remote[0], remote[2], localPort === port || localPort === undefined);
      };
      look();
      client.write('abc');
      await on.received(accepted, 3);
      look();
      await new Promise((resolve) => accepted.write('defgh', resolve));
      look();
      await on.received(client, 5);
      client.end();
      await once(accepted, 'close');
      look();
      return log;
    },
  "socket.bytesWritten of a write before it connects, in 'connect', and destroyed there": async (on) => {
    const { port } = await on.serve({}, quiet);
    const seen = [];
    for (const destroys of [false, true]) {
      const socket = on.dial({ port, host: HOST });
      socket.write('abc');
      socket.on('connect', () => {
        seen.push(socket.bytesWritten, socket.writableLength);
        if (destroys) socket.destroy();
        seen.push(socket.bytesWritten);
      });
      await once(socket, destroys ? 'close' : 'connect');
      await ticks(1);
      seen.push(socket.bytesWritten);
    }
    return seen;
  },
  'socket.autoSelectFamilyAttemptedAddresses': async (on) => {
    const { port } = await on.serve({}, quiet);
    const seen = [];
    for (const addresses of [[HOST], ['::1', HOST]]) {
      const lookup = resolving(...addresses);
      const socket = on.dial({ port, host: 'a.name', lookup, autoSelectFamily: true });
      await once(socket, 'connect');
      seen.push(socket.autoSelectFamilyAttemptedAddresses?.map((each) => each.replace(/:\d+$/, ':P')));
    }
    return seen;
  },
  'socket.timeout, socket.setTimeout': async (on) => {
    const { client } = await on.pair();
    const listener = () => {};
    const seen = [client.timeout, client.setTimeout(5_000, listener) === client, client.timeout];
    seen.push(client.listenerCount('timeout'), client.setTimeout(0, listener) === client);
    seen.push(client.listenerCount('timeout'), client.timeout);
    for (const args of [[-1], ['no'], [1, 'no'], [Number.NaN]])
      seen.push(thrown(() => client.setTimeout(...args)));
    return seen;
  },
};

export const METHODS = {
  'socket.connect: overloads, and what they return': async (on) => {
    const { port } = await on.serve({}, (socket) => quiet(socket).end());
    const file = await on.serve({}, (socket) => quiet(socket).end(), on.path(0));
    const seen = [];
    for (const args of [[port], [port, HOST], [{ port, host: HOST }], [on.path(0)], [{ path: on.path(0) }]]) {
      const socket = new on.api.Socket();
      on.cleanUp.push(() => socket.destroy());
      const called = new Promise((resolve) => {
        seen.push(socket.connect(...args, resolve) === socket, socket.listenerCount('connect'));
      });
      await called;
      seen.push(socket.listenerCount('connect'), socket.remoteAddress, typeof socket.localPort);
      await once(socket.resume(), 'close');
    }
    return [seen, typeof file.port];
  },
  'socket.connect: again, after it was closed, and after it was ended first': async (on) => {
    const { port } = await on.serve({}, (socket) => quiet(socket).on('data', (chunk) => socket.end(chunk)));
    const socket = new on.api.Socket();
    on.cleanUp.push(() => socket.destroy());
    const seen = [];
    for (let n = 0; n < 2; n++) {
      socket.connect({ port, host: HOST });
      socket.write(`life ${n}`);
      const [chunk] = await once(socket, 'data');
      seen.push(String(chunk), socket.bytesRead, socket.bytesWritten);
      await once(socket.resume(), 'close');
      seen.push(socket.destroyed, socket.bytesRead, socket.bytesWritten);
    }
    const ended = quiet(new on.api.Socket());
    on.cleanUp.push(() => ended.destroy());
    ended.end();
    ended.connect({ port, host: HOST });
    seen.push(ended.writableEnded, ended.writable);
    await once(ended, 'connect');
    return [...seen, ended.writableEnded, ended.readyState];
  },
  'socket.connect: a write of its own is lost': async (on) => {
    const { port } = await on.serve({}, (socket) => quiet(socket).end());
    class Own extends on.api.Socket {
      write() {
        return 'its own';
      }
    }
    const socket = new Own();
    const before = socket.write();
    socket.connect({ port, host: HOST });
    const after = socket.write('text');
    await once(socket.resume(), 'close');
    return [before, after];
  },
  'socket.destroy: error and callback, wherever it is in its life': async (on) => {
    const { port, client, accepted } = await on.pair();
    const log = [];
    const destroyed = (socket, error) =>
      new Promise((resolve) => {
        quiet(socket);
        const returned = socket.destroy(error, (why) => {
          log.push(['callback', why?.message]);
          resolve();
        });
        log.push(returned === socket, socket.destroyed, socket.errored?.message);
      });
    await destroyed(client, null);
    await destroyed(accepted, new Error('accepted'));
    await destroyed(client, new Error('again'));
    await destroyed(new on.api.Socket(), new Error('fresh'));
    await destroyed(on.dial({ port, host: HOST }), new Error('connecting'));
    await destroyed(on.dial({ port, host: HOST }), Object.assign(new Error('a read'), { syscall: 'read' }));
    return log;
  },
  'socket.destroySoon': async (on) => {
    const { client, accepted } = await on.pair();
    const text = on.text(accepted);
    client.write('before');
    client.destroySoon();
    const seen = [client.writable, client.destroyed];
    await once(client, 'close');
    return [...seen, String(await text)];
  },
  'socket.end: overloads': async (on) => {
    const seen = [];
    for (const args of [[], ['text'], ['746578', 'hex'], [Buffer.from('bytes')], [new Uint8Array([97])]])
      for (const callback of [false, true]) {
        const { client, accepted } = await on.pair();
        const text = on.text(accepted);
        const finished = once(client, 'finish');
        const called = new Promise((resolve) => {
          const returned = callback ? client.end(...args, () => resolve('called')) : client.end(...args);
          seen.push(returned === client, client.writableEnded, client.writable);
          if (!callback) resolve('none');
        });
        await finished;
        seen.push(await called, String(await text), client.bytesWritten);
      }
    return seen;
  },
  'socket.write: overloads, encodings, callbacks, cork': async (on) => {
    const { client, accepted } = await on.pair();
    const text = on.text(accepted);
    const log = [];
    client.cork();
    const returned = [
      client.write('é€', 'utf8'),
      client.write('6162', 'hex', () => log.push('hex')),
      client.write(new Uint8Array([99]), () => log.push('bytes')),
      client.write('YWJj', 'base64'),
      client.write('é', 'latin1'),
      client.write('x', 'ucs2'),
      client.write(''),
    ];
    const sizes = [client.writableLength, client.bytesWritten];
    client.uncork();
    client.end(() => log.push('end'));
    const bytes = await text;
    await until(() => log.length === 3);
    return [returned, sizes, bytes.toString('hex'), client.bytesWritten, log];
  },
  'socket.write: what is refused, and what fails': async (on) => {
    const { client } = await on.pair();
    const seen = [[1], [null], [undefined], [{}], ['x', 'no encoding']].map((args) =>
      thrown(() => client.write(...args)),
    );
    quiet(client);
    client.destroy();
    const failed = new Promise((resolve) => client.write('late', (error) => resolve(code(error))));
    const ended = new Promise((resolve) => client.end('late', (error) => resolve(code(error))));
    const fresh = quiet(new on.api.Socket());
    const unconnected = new Promise((resolve) => fresh.write('x', (error) => resolve(code(error))));
    return [seen, await failed, await ended, await unconnected, fresh.destroyed];
  },
  'socket.pause, socket.resume': async (on) => {
    const { client, accepted } = await on.pair();
    const got = [];
    accepted.on('data', (chunk) => got.push(String(chunk)));
    const seen = [accepted.pause() === accepted, accepted.isPaused()];
    await new Promise((resolve) => client.write('while paused', resolve));
    await ticks(3);
    seen.push([...got], accepted.resume() === accepted);
    await until(() => got.length > 0);
    return [...seen, got];
  },
  "socket.read, 'readable'": async (on) => {
    const { client, accepted } = await on.pair();
    const seen = [client.read(), client.readableLength];
    const readable = once(client, 'readable');
    accepted.write('abcdef');
    await readable;
    await until(() => client.readableLength === 6);
    return [...seen, String(client.read(2)), client.readableLength, String(client.read()), client.read()];
  },
  'socket.pause before it connects: nothing is read': async (on) => {
    const { port, acceptedFrom } = await on.serve({}, (socket) => quiet(socket).write('waiting'));
    const socket = on.dial({ port, host: HOST });
    const got = [];
    socket.on('data', (chunk) => got.push(String(chunk)));
    socket.pause();
    await once(socket, 'connect');
    await on.settled(socket, await acceptedFrom(socket));
    await ticks(5);
    const seen = [socket.bytesRead, socket.readableLength, got.length];
    socket.resume();
    await until(() => got.length > 0);
    return [...seen, got, socket.bytesRead];
  },
  'socket.ref, socket.unref': async (on) => {
    const { client, accepted } = await on.pair();
    const fresh = new on.api.Socket();
    return [client, accepted, fresh].map((socket) => [socket.unref() === socket, socket.ref() === socket]);
  },
  'socket.resetAndDestroy': async (on) => {
    const { client, accepted, port } = await on.pair();
    const failed = once(accepted.resume(), 'error');
    const closed = once(accepted, 'close');
    const own = once(client, 'close');
    const seen = [client.resetAndDestroy() === client, client.destroyed];
    const [error] = await failed;
    seen.push(
      error.code,
      error.syscall,
      Object.keys(error),
      error.message,
      await closed.catch(() => 'failed'),
      await own,
    );
    const fresh = new on.api.Socket();
    const refused = once(fresh, 'error');
    fresh.resetAndDestroy();
    seen.push(code((await refused)[0]));
    const early = on.dial({ port, host: HOST });
    early.resetAndDestroy();
    await once(early, 'close');
    return [...seen, early.destroyed];
  },
  'socket.setEncoding': async (on) => {
    const { client, accepted } = await on.pair();
    const seen = [client.setEncoding('hex') === client, client.readableEncoding];
    accepted.write('abc');
    const [chunk] = await once(client, 'data');
    return [...seen, chunk];
  },
  'socket.setKeepAlive, socket.setNoDelay, socket.setTypeOfService, socket.getTypeOfService': async (on) => {
    const { client, accepted } = await on.pair();
    const fresh = new on.api.Socket();
    const seen = [];
    for (const socket of [fresh, client, accepted]) {
      for (const args of [[], [true], [true, 1_000], [true, 1_000, 500, 3], [false]])
        seen.push(socket.setKeepAlive(...args) === socket);
      for (const args of [[], [true], [false], [1]]) seen.push(socket.setNoDelay(...args) === socket);
      if (socket.setTypeOfService === undefined) continue;
      seen.push(socket.setTypeOfService(16) === socket, socket.getTypeOfService());
      seen.push(
        thrown(() => socket.setTypeOfService(-1)),
        thrown(() => socket.setTypeOfService('no')),
      );
    }
    return [...seen, await on.exchange(client, accepted)];
  },
  'socket.address': async (on) => {
    const { client, port } = await on.pair();
    const { address, family, port: own } = client.address();
    return [address, family, own === client.localPort, new on.api.Socket().address(), own !== port];
  },
  'socket[Symbol.asyncDispose], async iteration, pipe': async (on) => {
    const { client, accepted } = await on.pair();
    accepted.pipe(accepted);
    client.end('round and round');
    let text = '';
    for await (const chunk of client) text += chunk;
    await client[Symbol.asyncDispose]?.();
    return [text, client.destroyed];
  },
};

export const EVENTS = {
  "socket 'connect', socket 'ready', socket 'data', socket 'end', socket 'close', 'finish': order and arguments, both sides":
    async (on) => {
      const log = { client: [], accepted: [] };
      const events = [
        'connect',
        'ready',
        'data',
        'end',
        'finish',
        'close',
        'drain',
        'timeout',
        'error',
        'prefinish',
      ];
      const listen = (socket, into) => {
        for (const event of events)
          socket.on(event, function (...args) {
            into.push([
              event,
              this === socket,
              args.map((arg) => (Buffer.isBuffer(arg) ? String(arg) : arg)),
            ]);
          });
      };
      const { port, server } = await on.serve({}, undefined);
      server.on('connection', (socket) => {
        listen(socket, log.accepted);
        socket.on('data', (chunk) => socket.write(chunk));
      });
      const socket = on.dial({ port, host: HOST });
      listen(socket, log.client);
      socket.write('text');
      await once(socket, 'data');
      socket.end();
      await once(socket, 'close');
      await until(() => log.accepted.at(-1)?.[0] === 'close');
      return log;
    },
  "socket 'error' and 'close' of a connection that is refused: fields, message, arguments": async (on) => {
    const port = await on.unused();
    const seen = [];
    for (const [host, options] of [
      [HOST, {}],
      ['a.name', { lookup: resolving(HOST) }],
      ['a.name', { lookup: resolving(HOST), localAddress: HOST }],
    ]) {
      const socket = on.dial({ port, host, ...options });
      const log = [];
      record(socket, ['close', 'connect', 'end'], log);
      const closed = new Promise((resolve) => socket.once('close', resolve));
      const [error] = await once(socket, 'error');
      await closed;
      const own = options.localAddress === undefined ? 'none' : 'Local';
      seen.push([
        error.name,
        error.code,
        error.syscall,
        error.address,
        error.port === port,
        Object.keys(error),
        log,
      ]);
      seen.push(
        error.message.replaceAll(port, 'P').replace(/Local \(.*\)/, 'Local'),
        own,
        snapshot(socket, port),
      );
    }
    return seen;
  },
  "socket 'lookup', socket 'connectionAttempt', socket 'connectionAttemptFailed', socket 'connectionAttemptTimeout': arguments":
    async (on) => {
      const { port } = await on.serve({}, quiet);
      const closedPort = await on.unused();
      const seen = [];
      for (const [options, outcome] of [
        [{ port, host: HOST }, 'connect'],
        [{ port, host: 'a.name', lookup: resolving(HOST) }, 'connect'],
        [{ port, host: 'a.name', lookup: resolving('::1', HOST), autoSelectFamily: true }, 'connect'],
        [{ port: closedPort, host: HOST }, 'error'],
        [{ port: closedPort, host: 'a.name', lookup: resolving(HOST) }, 'error'],
        [
          {
            port,
            host: 'a.name',
            lookup: (_h, _o, done) => done(Object.assign(new Error('no'), { code: 'ENO' })),
          },
          'error',
        ],
      ]) {
        const socket = on.dial(options);
        const log = [];
        for (const event of [
          'lookup',
          'connectionAttempt',
          'connectionAttemptFailed',
          'connectionAttemptTimeout',
        ])
          socket.on(event, (...args) =>
            log.push([
              event,
              ...args.map((arg) => (arg instanceof Error ? arg.code : arg === options.port ? 'P' : arg)),
            ]),
          );
        const [error] = await once(socket, outcome);
        seen.push(log, code(error));
      }
      return seen;
    },
  "socket 'timeout': of idleness, by option, not again, and not while it writes": async (on) => {
    const { port } = await on.serve({}, quiet);
    const socket = on.dial({ port, host: HOST, timeout: 20 });
    const log = [];
    socket.on('timeout', (...args) => log.push([args.length, socket.timeout, socket.destroyed]));
    await once(socket, 'timeout');
    socket.setTimeout(5, () => log.push('listener'));
    await until(() => log.includes('listener'));
    socket.setTimeout(0);
    return log;
  },
  "socket 'drain', socket.writableNeedDrain": async (on) => {
    const { client, accepted } = await on.pair();
    accepted.pause();
    const drains = [];
    client.on('drain', (...args) => drains.push(args.length));
    // More than the system takes of a connection.
    let more = true;
    for (let n = 0; n < 16; n++) more = client.write(Buffer.alloc(1 << 20));
    const seen = [more, client.writableNeedDrain, client.writableLength > 0];
    accepted.resume();
    await until(() => client.writableLength === 0 && drains.length > 0);
    return [...seen, drains[0], client.writableNeedDrain];
  },
  "socket 'close' of one destroyed in 'connect' with a write before it: the server hears of it": async (
    on,
  ) => {
    const log = [];
    const { port } = await on.serve({}, (socket) => {
      log.push('connection');
      quiet(socket)
        .resume()
        .on('close', () => log.push('close'));
    });
    const socket = quiet(on.dial({ port, host: HOST }));
    socket.write('never sent', (error) => log.push(code(error)));
    socket.on('connect', () => socket.destroy());
    await until(() => log.includes('close'));
    return log.sort();
  },
  "socket 'end' without allowHalfOpen: the other side is ended, too": async (on) => {
    const { client, accepted } = await on.pair();
    accepted.end('bye');
    const text = await on.text(client);
    if (!accepted.destroyed) await once(accepted.resume(), 'close');
    return [String(text), client.writableEnded, client.writable, accepted.readableEnded];
  },
  'an error that a listener throws away: errored, closed, captureRejections': async (on) => {
    const { client } = await on.pair();
    const why = new Error('why');
    const failed = once(client, 'error');
    const closed = new Promise((resolve) => client.once('close', resolve));
    client.destroy(why);
    const [error] = await failed;
    return [error === why, await closed, client.errored === why, client.closed, client.readyState];
  },
};

const storage = new AsyncLocalStorage();
const where = () => storage.getStore() ?? 'nowhere';

export const CONTEXTS = {
  "the async context of 'connect', 'data', 'lookup', callbacks and 'connection'": async (on) => {
    const log = {};
    const note = (name) => () => {
      log[name] = where();
    };
    const server = on.api.createServer((socket) => {
      note('connection')();
      quiet(socket).on('end', note('end of the accepted')).resume();
      socket.write('hello');
    });
    storage.run('listen', () => on.listen(server));
    await once(server, 'listening');
    const { port } = server.address();
    const socket = storage.run('connect', () => on.dial({ port, host: 'a.name', lookup: resolving(HOST) }));
    for (const event of ['lookup', 'connect', 'ready', 'data', 'end']) socket.on(event, note(event));
    storage.run('first write', () => socket.write('x', note('first write')));
    await Promise.all([once(socket, 'data'), once(socket, 'ready')]);
    for (const name of ['second write', 'third write'])
      await new Promise((resolve) =>
        storage.run(name, () =>
          socket.write('y', () => {
            note(name)();
            resolve();
          }),
        ),
      );
    storage.run('end of the client', () => socket.end(note('end of the client')));
    await once(socket, 'close');
    await until(() => 'end of the accepted' in log);
    return log;
  },
  'the async context of callbacks of writes past the threshold, both sides': async (on) => {
    const { client, accepted } = await on.pair();
    const wrong = [];
    for (const [from, to] of [
      [client, accepted],
      [accepted, client],
    ]) {
      to.resume();
      for (let n = 0; n < 12; n++) {
        const name = `write ${n}`;
        const written = new Promise((resolve) =>
          storage.run(name, () =>
            from.write(Buffer.alloc(40_000), () => {
              if (where() !== name) wrong.push([name, where()]);
              resolve();
            }),
          ),
        );
        if (n % 4 === 3) await written;
      }
    }
    return wrong;
  },
  "an entry of type 'net' in perf_hooks": async (on) => {
    const { port } = await on.serve({}, quiet);
    const seen = [];
    const observer = new PerformanceObserver((list) => {
      for (const { name, entryType, detail, duration } of list.getEntries())
        if (detail?.port === port) seen.push([name, entryType, detail.host, duration >= 0]);
    });
    observer.observe({ entryTypes: ['net'] });
    on.cleanUp.push(() => observer.disconnect());
    for (const host of [HOST, 'a.name']) {
      await once(on.dial({ port, host, lookup: resolving(HOST) }), 'connect');
      await until(() => seen.length > 0 && (host === HOST || seen.length > 1));
    }
    await ticks(3);
    return seen;
  },
};
