/** The server of the traffic generator without its process. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import { test } from 'node:test';
import { serverMain } from '../dist/server-command.js';

test('SIGTERM closes the connections from before the server was ready, too', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const { listen } = net.Server.prototype;
  const listening = new Promise((resolve) =>
    t.mock.method(net.Server.prototype, 'listen', function (...args) {
      this.once('listening', () => resolve(this.address().port));
      return listen.apply(this, args);
    }),
  );
  const said = [];
  for (const stream of [process.stdout, process.stderr]) {
    const write = stream.write.bind(stream);
    // The runner of tests writes there, too.
    t.mock.method(stream, 'write', (text, ...rest) =>
      /^\{"ready"|^\d+ flows/.test(text) ? said.push(text) > 0 : write(text, ...rest),
    );
  }
  const ended = serverMain(['--listen', '127.0.0.1:0', '--wait-timeout', '1s']);
  const early = net.connect(await listening, '127.0.0.1');
  t.after(() => early.destroy());
  await once(early, 'connect');
  assert.deepEqual(said, []);
  t.mock.timers.tick(1_500);
  while (said.length === 0) await new Promise(setImmediate);
  process.emit('SIGTERM');
  assert.equal(await ended, 0);
  await once(early.resume(), 'close');
});
