/** No connection to itself: from a port to the same port of this host, where nobody listens. */
import assert from 'node:assert/strict';
import net from 'node:net';
import { beforeEach, test } from 'node:test';
import { forgetPeers } from '../dist/client/peers.js';
import { nextPort } from '../dist/client/ports.js';
import repnet from '../dist/index.js';
import { newHandle } from '../dist/net-internals.js';
import { refusingPort } from './lib/refusing-port.mjs';

const HOST = '127.0.0.1';
const native = Object.getPrototypeOf(newHandle());

beforeEach(forgetPeers);

/** The source ports in the order in which they are taken, from the next on. */
function sequence() {
  const ports = [nextPort()];
  for (let port = nextPort(); port !== ports[0]; port = nextPort()) ports.push(port);
  return [...ports.slice(1), ports[0]];
}

/** The error of a socket that cannot connect. */
function refusal(socket) {
  return new Promise((resolve, reject) => {
    socket.once('error', resolve).once('connect', () => reject(new Error('connected to itself')));
  });
}

test('a source port of a flow is none of the ports that it goes to', async (t) => {
  const [first, second] = sequence();
  const bound = [];
  const { bind } = native;
  t.mock.method(native, 'bind', function (address, port) {
    bound.push(port);
    return bind.call(this, address, port);
  });
  const to = { port: first, replicaPort: second, host: HOST, replicate: 'flow', peer: 'repnet' };
  const socket = repnet.connect(to);
  t.after(() => socket.destroy());
  assert.equal((await refusal(socket)).code, 'ECONNREFUSED');
  assert.equal(bound.length, 2);
  for (const port of bound)
    assert.ok(port !== first && port !== second, `from ${port} to ${first} and ${second}`);
});

test("a flow from a port of the application's own that is the second port has no second connection", async (t) => {
  const port = refusingPort(t);
  const options = { port, host: HOST, localPort: port + 1 };
  const expected = await refusal(net.connect(options));
  const socket = repnet.connect({ ...options, replicate: 'flow', peer: 'repnet' });
  t.after(() => socket.destroy());
  assert.equal((await refusal(socket)).message, expected.message);
});

// The system may choose any free port for a connection; here it chooses the one that is connected to.
for (const [host, options] of [
  [HOST, {}],
  ['localhost', { family: 4 }],
])
  for (const peer of ['repnet', 'plain'])
    test(`RepSYN to ${host}, where nobody listens, taken for ${peer}: refused, as nobody but itself is there`, async (t) => {
      const port = refusingPort(t);
      const error = await new Promise((resolve) =>
        net.connect({ port, host, ...options }).on('error', resolve),
      );
      const { connect } = native;
      let own = 0;
      t.mock.method(native, 'connect', function (request, address, to) {
        if (this.bind(address, to) === 0) own++;
        return connect.call(this, request, address, to);
      });
      // The last resort is net's own connection, which is for net to choose a port for.
      const through = net.Socket.prototype.connect;
      t.mock.method(net.Socket.prototype, 'connect', function (...args) {
        if (this.constructor === repnet.Socket) t.mock.restoreAll();
        return through.apply(this, args);
      });
      const socket = repnet.connect({ port, host, ...options, replicate: 'syn', peer });
      t.after(() => socket.destroy());
      const { message, code, errno, syscall, address, port: at } = await refusal(socket);
      assert.ok(own > 0);
      assert.deepEqual(
        { message, code, errno, syscall, address, port: at },
        Object.fromEntries(
          ['message', 'code', 'errno', 'syscall', 'address', 'port'].map((name) => [name, error[name]]),
        ),
      );
    });
