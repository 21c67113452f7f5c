/**
 * `ref()` and `unref()`: a process that has nothing else to do ends if its sockets and servers are unreferenced, and does not
 * while one of them is referenced, as with net and however a flow is carried; timers of this library keep none, but those that a referenced
 * socket waits for at the end of what it reads.
 */
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import net from 'node:net';
import { after, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import repnet from '../dist/index.js';
import { encodeAnswer } from '../dist/wire.js';
import { countingServer, echo, echoServer, hello, raw, until } from './lib/support.mjs';

const PROGRAM = fileURLToPath(new URL('lib/reference-child.mjs', import.meta.url));
const LONG = 60_000;
/** Timers that would keep a process for a minute if they were referenced. */
const PATIENT = { pairTimeout: LONG, waitTimeout: LONG };
/** Name, whether all is tried by it, options. */
const MODES = [
  ['off', true, { replicate: false }],
  ['syn', true, { replicate: 'syn', peer: 'repnet' }],
  ['syn to an unmodified server', false, { replicate: 'syn', peer: 'plain' }],
  ['flow', true, { replicate: 'flow', peer: 'repnet' }],
];

/** A socket that is closed may connect again. */
const AGAIN = ['destroy', 'closed', 'connect', 'connected'];

/** One process does it all, one case after the other. */
const child = fork(PROGRAM);
after(() => child.kill());
let free = Promise.resolve();

/** Has the process do the steps; `hear` is its next message that has `name`, `outcome` what comes of it. */
async function start(role, options, steps, port) {
  const before = free;
  let done;
  free = new Promise((resolve) => {
    done = resolve;
  });
  await before;
  const messages = new EventEmitter();
  const tell = (message) => messages.emit(Object.keys(message)[0], Object.values(message)[0]);
  const die = () => messages.emit('error', new Error('the process has ended'));
  child.on('message', tell).once('exit', die);
  const hear = (name) => once(messages, name).then(([value]) => value);
  const outcome = hear('outcome').finally(() => {
    child.off('message', tell).off('exit', die);
    done();
  });
  child.send({ role, options: { defaults: PATIENT, ...options }, steps, port });
  return { hear, outcome };
}

const outcome = async (...args) => (await start(...args)).outcome;

describe('references', { concurrency: 4 }, () => {
  for (const [mode, main, options] of MODES) {
    for (const [expected, what, steps] of [
      ['stays', 'a connected socket', ['connect', 'connected', 'exchange', 'wait']],
      ['exits', 'unref() of a connected socket', ['connect', 'connected', 'exchange', 'wait', 'unref']],
      ['exits', 'unref() before connect()', ['unref', 'connect', 'connected']],
      [
        'stays',
        'unref() in a life before',
        ['connect', 'connected', 'exchange', 'unref', ...AGAIN, 'exchange'],
      ],
      [
        'exits',
        'unref() between two lives',
        ['connect', 'connected', 'destroy', 'closed', 'unref', 'connect', 'connected'],
      ],
      ['exits', 'unref() while it connects', ['connect', 'unref', 'connected']],
      ['stays', 'unref() and then ref()', ['connect', 'connected', 'exchange', 'unref', 'ref']],
      ['exits', 'a socket that was destroyed', ['connect', 'connected', 'exchange', 'destroy']],
      ['exits', 'a socket that was destroyed while it connected', ['connect', 'destroy']],
    ].slice(0, main ? undefined : 3))
      test(`client, ${mode}, ${what}: the process ${expected}`, async (t) => {
        const { port } = await echoServer(t);
        assert.equal(await outcome('client', options, steps, port), expected);
      });
  }

  for (const mode of ['syn', 'flow'])
    for (const [expected, steps] of [
      ['stays', ['connect', 'connected', 'wait']],
      ['exits', ['connect', 'connected', 'unref', 'wait']],
      ['exits', ['unref', 'connect', 'connected', 'wait']],
    ])
      test(`client, ${mode}, hedged, ${steps.join(', ')}: the process ${expected}`, async (t) => {
        const { port } = await echoServer(t);
        const options = { replicate: mode, peer: 'repnet', copyDelay: 20 };
        assert.equal(await outcome('client', options, steps, port), expected);
      });

  test('client, hedged, a delay that has not passed: it does not keep the process', async (t) => {
    const { port } = await echoServer(t);
    const options = { replicate: 'flow', peer: 'repnet', copyDelay: LONG };
    assert.equal(await outcome('client', options, ['connect', 'connected', 'unref'], port), 'exits');
    assert.equal(await outcome('client', options, ['connect', 'connected', 'destroy'], port), 'exits');
  });

  for (const [expected, what, steps, pairTimeout] of [
    ['exits', "the process ends when 'end' has been told", ['connect', 'connected', 'ended'], 200],
    ['stays', 'the process waits', ['connect', 'connected', 'wait'], LONG],
    ['exits', 'unref() meanwhile ends it', ['connect', 'connected', 'wait', 'unref'], LONG],
    ['stays', 'ref() meanwhile does not', ['connect', 'connected', 'wait', 'unref', 'ref'], LONG],
  ])
    test(`client, hedged, a server that ends without a byte, of which the second connection may know better: ${what}`, async (t) => {
      const { port } = await countingServer(t, net, 0, (socket) => socket.end());
      const waits = { defaults: { pairTimeout }, replicate: 'flow', peer: 'repnet', copyDelay: LONG };
      assert.equal(await outcome('client', waits, steps, port), expected);
    });

  test('client, closed, a second connection that is not read: it does not keep the process that the first has done with', async (t) => {
    const { port } = await countingServer(t, net, 0, (socket) =>
      socket.resume().on('end', () => socket.end()),
    );
    const answering = (socket) => {
      const answer = { refusal: 0, flags: 0, threshold: 0, port, version: 2 };
      socket.once('readable', () => socket.read() && socket.write(encodeAnswer(answer)));
    };
    const second = await countingServer(t, net, 0, answering);
    const options = {
      defaults: { pairTimeout: 200 },
      replicate: 'flow',
      peer: 'repnet',
      threshold: 40_000_000,
      replicaPort: second.port,
      stays: [100, 100],
    };
    const steps = ['connect', 'connected', 'paired', 'sendMuch'];
    assert.equal(await outcome('client', options, steps, port), 'exits');
  });

  test('client, a server that is silent on its second port: the wait for it does not keep the process', async (t) => {
    const { port } = await echoServer(t, { replicate: false });
    const silent = net.createServer((socket) => {
      t.after(() => socket.destroy());
    });
    await new Promise((resolve) => silent.listen(0, '127.0.0.1', resolve));
    t.after(() => silent.close());
    const options = { replicate: 'flow', replicaPort: silent.address().port };
    const steps = ['connect', 'connected', 'exchange', 'unref'];
    assert.equal(await outcome('client', options, steps, port), 'exits');
  });

  for (const replicate of [false, 'flow']) {
    for (const [expected, what, steps] of [
      ['stays', 'a server that listens', ['listen']],
      ['exits', 'unref() of a server that listens', ['listen', 'unref']],
      ['exits', 'unref() before listen()', ['unref', 'listen']],
      ['stays', 'unref() and then ref()', ['unref', 'listen', 'ref']],
      ['exits', 'a server that was closed', ['listen', 'close']],
    ])
      test(`server, replicate ${replicate}, ${what}: the process ${expected}`, async () => {
        assert.equal(await outcome('server', { replicate }, steps), expected);
      });

    for (const [expected, what, steps] of [
      ['stays', 'a socket it has accepted', ['unref']],
      ['exits', 'unref() of the socket, too', ['unref', 'unrefAccepted']],
      ['stays', 'unref() and ref() of the socket', ['unref', 'unrefAccepted', 'refAccepted']],
    ])
      test(`server, unreferenced, replicate ${replicate}, ${what}: the process ${expected}`, async (t) => {
        const options = { replicate };
        const { hear, outcome } = await start('server', options, [
          'listen',
          'accept',
          'disconnect',
          ...steps,
        ]);
        const port = await hear('port');
        const client = repnet.connect({ host: '127.0.0.1', port, peer: 'repnet', ...options });
        t.after(() => client.destroy());
        client.on('error', () => {});
        assert.equal(await echo(client, 'x'), 'x');
        assert.equal(await outcome, expected);
      });
  }

  test("server, unreferenced, a plain client from a host that pairs: the process ends when 'end' has been told", async () => {
    const steps = ['listen', 'pass', 'endOfNext', 'disconnect'];
    const { hear, outcome } = await start('server', {}, steps);
    const port = await hear('port');
    const passed = hear('passed');
    const client = repnet.connect({ host: '127.0.0.1', port, replicate: 'flow', peer: 'repnet' });
    await echo(client, 'x');
    await until(() => repnet.info(client).paired);
    client.end();
    await passed;
    net
      .connect(port, '127.0.0.1')
      .on('error', () => {})
      .end('x');
    assert.equal(await outcome, 'exits');
  });

  test('server, unreferenced: connections to the second port that say nothing, or wait, do not keep the process', async (t) => {
    const { hear, outcome } = await start('server', {}, ['listen', 'silence', 'disconnect', 'unref']);
    const port = await hear('port');
    await raw(t, port + 1);
    // A server that has just begun lets no flow start with its second connection: this one waits.
    const waiting = await raw(t, port + 1);
    await new Promise((resolve) => waiting.socket.write(hello(waiting, port), resolve));
    child.send({});
    assert.equal(await outcome, 'exits');
  });
});
