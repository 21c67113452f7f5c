/** Rows of what Node documents of `net`: sockets' constructor, properties and methods. See ../../net-table.test.mjs. */
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import net from 'node:net';
import { code, HOST, quiet, record, resolving, snapshot, thrown } from '../observe.mjs';
import { ticks, until } from '../support.mjs';

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
