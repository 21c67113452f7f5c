/** Rows of what Node documents of `net`: events, and what is told beside them. See ../../net-table.test.mjs. */
import { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { PerformanceObserver } from 'node:perf_hooks';
import { code, HOST, quiet, record, resolving, snapshot } from '../observe.mjs';
import { ticks, until } from '../support.mjs';

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
    const port = on.unused();
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
      const closedPort = on.unused();
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
  'the channels net.client.socket, net.server.socket and tracing:net.server.listen': async (on) => {
    const seen = [];
    const names = ['start', 'end', 'asyncStart', 'asyncEnd', 'error'].map(
      (name) => `tracing:net.server.listen:${name}`,
    );
    const emitters = [];
    /** Which emitter is told of: by its number. Others are added as net makes them. */
    const number = (emitter) => {
      if (!emitters.includes(emitter)) emitters.push(emitter);
      return emitters.indexOf(emitter);
    };
    for (const name of [...names, 'net.client.socket', 'net.server.socket']) {
      const hear = ({ server, socket, error, options, ...rest }) =>
        seen.push([
          name,
          number(server ?? socket),
          error?.code,
          Object.keys(options ?? {}),
          Object.keys(rest),
        ]);
      subscribe(name, hear);
      on.cleanUp.push(() => unsubscribe(name, hear));
    }
    const server = on.api.createServer((socket) => quiet(socket).end());
    number(server);
    on.listen(server);
    await once(server, 'listening');
    const { port } = server.address();
    const ways = [
      () => on.dial(port, HOST),
      () => on.dial({ port, host: 'a.name', lookup: resolving(HOST) }),
      () => on.dial({ port, host: 'a.name', lookup: resolving('::1', HOST), autoSelectFamily: true }),
      () => new on.api.Socket().connect({ port, host: HOST }),
    ];
    for (const connect of ways) {
      const socket = connect();
      number(socket);
      await once(socket.resume(), 'close');
    }
    const other = on.api.createServer();
    number(other);
    on.listen(other, port, HOST);
    await once(other, 'error');
    return seen;
  },
};
