/** Ports that tests choose for themselves are nobody else's, whoever listens on this machine. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import { test } from 'node:test';
import { ownPort } from './lib/support.mjs';

test('a port on which a program listens at every address is passed over', async (t) => {
  const taken = ownPort() + 1;
  const other = net.createServer().listen(taken, '0.0.0.0');
  t.after(() => other.close());
  await once(other, 'listening');
  assert.notEqual(ownPort(), taken);
});
