/** Rows of what Node documents of `net`: the module and its servers. See ../../net-table.test.mjs. */
import { once } from 'node:events';
import net from 'node:net';
import { code, HOST, quiet, thrown } from '../observe.mjs';
import { ticks, until } from '../support.mjs';

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
        [{ port: 1, host: HOST, localAddress: 'no address' }],
        [{ port: 1, host: HOST, localPort: 'no port' }],
        [{ port: 1, host: 'a.name', lookup: 'no function' }],
        [{ port: 1, host: 'a.name', hints: -1 }],
        [{ port: 1, host: 'a.name', autoSelectFamily: 'no' }],
        [{ port: 1, host: HOST, autoSelectFamilyAttemptTimeout: 'no' }],
        [{ path: 1 }],
        [{ port: 1, host: HOST, signal: 'no signal' }],
        [{ port: 1, host: HOST, objectMode: true }],
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
      told.push([this === server, args.length, socket.server === server, socket._server === server]);
      told.push([
        socket instanceof on.api.Socket,
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
