/** The one state of a socket: what is attached to it, and what others find at `_handle` meanwhile. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import { beforeEach, test } from 'node:test';
import { forgetPeers } from '../dist/client/peers.js';
import repnet from '../dist/index.js';
import { attach, attachment, becomeNative, detach, detachToConnect } from '../dist/socket-internals.js';
import { defaults, echo, echoServer, until } from './lib/support.mjs';

beforeEach(() => {
  forgetPeers();
  Object.assign(defaults, { waitTimeout: 300, pairTimeout: 300 });
});

const something = () => ({ flow: undefined, paired: false, native: true });

test('what takes the place of an attachment takes over its bridge, and that net is at work', () => {
  const socket = new repnet.Socket();
  const first = something();
  attach(socket, first);
  assert.deepEqual([first.bridge, first.natively], [undefined, false]);
  Object.assign(first, { bridge: {}, natively: true });
  const second = something();
  attach(socket, second);
  assert.deepEqual([second.bridge === first.bridge, second.natively], [true, true]);
  detach(socket);
  assert.notEqual(attachment(socket), second);
  assert.deepEqual([attachment(socket).bridge === first.bridge, attachment(socket).natively], [true, true]);
});

test('without a bridge nothing is left of it', () => {
  for (const end of [detach, detachToConnect, (socket) => becomeNative(socket, { onread() {} })]) {
    const socket = new repnet.Socket();
    attach(socket, something());
    end(socket);
    assert.equal(attachment(socket), undefined);
  }
});

test('a socket that net connects has no attachment, and its bridge again when it is connected', () => {
  const socket = new repnet.Socket();
  const what = something();
  attach(socket, what);
  what.bridge = {};
  detachToConnect(socket);
  assert.equal(attachment(socket), undefined);
  socket.emit('connect');
  assert.deepEqual([attachment(socket).bridge === what.bridge, attachment(socket).natively], [true, false]);
});

test('while net is at work on one socket, another shows what stands for its two connections', async (t) => {
  const { port } = await echoServer(t);
  const options = { host: '127.0.0.1', port, replicate: 'flow', peer: 'repnet' };
  const other = repnet.connect(options);
  let shown;
  class Looking extends repnet.Socket {
    _destroy(error, done) {
      shown = other._handle;
      super._destroy(error, done);
    }
  }
  const socket = new Looking().connect(options);
  t.after(() => other.destroy());
  for (const each of [other, socket]) await echo(each, 'hello');
  socket.resetAndDestroy();
  await once(socket, 'close');
  assert.notEqual(shown, undefined);
  assert.equal(shown, other._handle);
  assert.equal(await echo(other, 'still'), 'still');
});

/** What becomes of a client's socket that is told to connect again: at once, or after `what`. */
async function connectedTwice(t, api, options, what = () => {}) {
  const { port } = await echoServer(t);
  const target = { host: '127.0.0.1', port };
  const socket = new api.Socket().connect({ ...target, ...options });
  t.after(() => socket.destroy());
  await what(socket);
  const heard = [];
  for (const event of ['connect', 'error', 'close'])
    socket.on(event, ({ code, syscall, address, port: to } = {}) =>
      heard.push(event === 'error' ? [code, syscall, address, to === port] : event),
    );
  socket.connect(target);
  await until(() => heard.includes('close'));
  return heard;
}

for (const replicate of ['flow', 'syn'])
  test(`connect() of a socket that is connecting, ${replicate}: the error of net`, async (t) => {
    const expected = await connectedTwice(t, net, {});
    assert.deepEqual(await connectedTwice(t, repnet, { replicate, peer: 'repnet' }), expected);
  });

// net's own socket says 'connect' once more on Linux, and this only the next time.
for (const [name, copyDelay] of [
  ['one connection', 600_000],
  ['two connections', 0],
])
  test(`connect() of a socket whose flow has ${name}: an error, as of a connection that is there`, async (t) => {
    const flow = { replicate: 'flow', peer: 'repnet', copyDelay };
    const ready = async (socket) => {
      await echo(socket, 'x');
      if (copyDelay === 0) await until(() => repnet.info(socket).paired);
    };
    assert.deepEqual(await connectedTwice(t, repnet, flow, ready), [
      ['EISCONN', 'connect', '127.0.0.1', true],
      'close',
    ]);
  });

test('connect() of a socket that was accepted and waits for its second connection: the error of net', async (t) => {
  const seen = [];
  for (const api of [net, repnet]) {
    const server = api.createServer((socket) => {
      socket.connect(server.address().port, '127.0.0.1');
      socket.on('error', ({ code, syscall }) => seen.push([code, syscall]));
    });
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    t.after(() => server.close());
    const client = net.connect(server.address().port, '127.0.0.1').on('error', () => {});
    t.after(() => client.destroy());
    await once(client, 'close');
  }
  assert.deepEqual(seen[1], seen[0]);
});
