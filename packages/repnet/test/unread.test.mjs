/**
 * A server that destroys a socket: with bytes of the client's unread the client is told by ECONNRESET, as by net, where the system resets
 * the connection; without, or after a reply, by the end of the stream.
 */
import assert from 'node:assert/strict';
import net from 'node:net';
import { before, test } from 'node:test';
import repnet from '../dist/index.js';
import { defaults, OWN_ADDRESS, ownPort, settle, until } from './lib/support.mjs';

before(() => {
  Object.assign(defaults, { waitTimeout: 2_000, pairTimeout: 2_000 });
});

const WAYS = {
  net: { api: net },
  RepSYN: { api: repnet, options: { replicate: 'syn', peer: 'repnet' } },
  RepFlow: { api: repnet, options: { replicate: 'flow', peer: 'repnet' }, pairs: true },
};

/** A flow that is established, both its connections if there are two: both ends, and what the client sees. */
async function established(t, { api, options, pairs }, serverOptions) {
  const server = api.createServer(serverOptions);
  // A port once: what a client knows of a server it knows by its port.
  const port = 2 * ownPort();
  await new Promise((resolve) => server.listen(port, OWN_ADDRESS, resolve));
  let accepted;
  server.on('connection', (socket) => {
    accepted = socket.on('error', () => {});
  });
  const client = api.connect({ port, host: OWN_ADDRESS, ...options });
  t.after(() => {
    client.destroy();
    accepted?.destroy();
    server.close();
  });
  const seen = { text: '', ended: false, error: undefined };
  client.on('data', (chunk) => {
    seen.text += chunk;
  });
  client.on('end', () => {
    seen.ended = true;
  });
  client.on('error', (error) => {
    seen.error = error.code;
  });
  await until(() => accepted !== undefined && !client.connecting, 'the connection');
  if (pairs) await until(() => repnet.info(client).paired && repnet.info(accepted).paired, 'the second one');
  const closed = new Promise((resolve) => client.once('close', resolve));
  return { client, accepted, seen, closed };
}

const RESET = { text: '', ended: false, error: 'ECONNRESET' };
const ENDED = { text: '', ended: true, error: undefined };

for (const [name, way] of Object.entries(WAYS)) {
  for (const size of [1, 60_000, 300_000])
    test(`${name}: ${size} bytes that the application has not begun to read: ECONNRESET`, async (t) => {
      const { client, accepted, seen, closed } = await established(t, way, { pauseOnConnect: true });
      await new Promise((resolve) => client.write(Buffer.alloc(size), resolve));
      await settle();
      accepted.destroy();
      await closed;
      assert.deepEqual(seen, RESET);
    });

  test(`${name}: more than the application has taken, which is behind: ECONNRESET`, async (t) => {
    const { client, accepted, seen, closed } = await established(t, way);
    accepted.pause();
    client.write(Buffer.alloc(8_000_000));
    await until(() => accepted.readableLength > 0, 'what is read ahead');
    await settle();
    accepted.destroy();
    await closed;
    assert.deepEqual(seen, RESET);
  });

  test(`${name}: nothing unread: the end`, async (t) => {
    const { client, accepted, seen, closed } = await established(t, way);
    let read = 0;
    accepted.on('data', (chunk) => (read += chunk.length));
    client.write(Buffer.alloc(60_000));
    await until(() => read === 60_000, 'all of it');
    accepted.destroy();
    await closed;
    assert.deepEqual(seen, ENDED);
  });

  test(`${name}: after a reply to what was read: the reply, and the end`, async (t) => {
    const { client, accepted, seen, closed } = await established(t, way);
    accepted.once('data', () => {
      accepted.pause();
      accepted.write('no', () => accepted.destroy());
    });
    client.write('question');
    await closed;
    assert.deepEqual(seen, { ...ENDED, text: 'no' });
  });
}
