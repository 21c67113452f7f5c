/** The one state of a socket: what is attached to it, and what others find at `_handle` meanwhile. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { beforeEach, test } from 'node:test';
import { forgetPeers } from '../dist/client/peers.js';
import repnet from '../dist/index.js';
import { attach, attachment, becomeNative, detach, detachToConnect } from '../dist/socket-internals.js';
import { defaults, echo, echoServer } from './lib/support.mjs';

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
