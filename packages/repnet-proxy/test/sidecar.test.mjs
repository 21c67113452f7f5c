/** The sidecar without its process. */
import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import fs from 'node:fs';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { refusingPort } from '../../repnet/test/lib/refusing-port.mjs';
import { parseConnect, parseListen } from '../dist/endpoint.js';
import { Sidecar } from '../dist/sidecar.js';

test('a Unix socket whose permissions cannot be set is closed', async (t) => {
  const place = await mkdtemp(path.join(tmpdir(), 'repnet-proxy-'));
  t.after(() => rm(place, { recursive: true }));
  const near = path.join(place, 'near.sock');
  t.mock.method(fs, 'chmodSync', () => {
    throw Object.assign(new Error('not yours'), { code: 'EPERM' });
  });
  const sidecar = new Sidecar({
    routes: [{ listen: parseListen(`unix:${near}`), connect: parseConnect('tcp://127.0.0.1:1') }],
    maxConnections: 1,
    connectTimeout: 0,
    idleTimeout: 0,
    socketMode: 0o600,
  });
  await assert.rejects(sidecar.start(), { code: 'EPERM' });
  await assert.rejects(stat(near), { code: 'ENOENT' });
});

for (const kind of ['tcp', 'flow', 'syn'])
  test(`${kind}: bytes that a refused destination never had are not counted as relayed`, async (t) => {
    const ends = new EventEmitter();
    const ended = once(ends, 'relay-end');
    const sidecar = new Sidecar({
      routes: [
        {
          listen: parseListen('tcp://127.0.0.1:0'),
          connect: parseConnect(`${kind}://127.0.0.1:${refusingPort(t)}`),
        },
      ],
      maxConnections: 1,
      connectTimeout: 0,
      idleTimeout: 0,
      onEvent: (event) => ends.emit(event.event, event),
    });
    await sidecar.start();
    t.after(() => sidecar.drain(0));
    const client = net.connect(sidecar.addresses()[0].port, '127.0.0.1').on('error', () => {});
    t.after(() => client.destroy());
    client.write(Buffer.alloc(5_000));
    const [{ end, bytesIn, bytesOut }] = await ended;
    assert.deepEqual([end, bytesIn, bytesOut], ['connect-failed', 0, 0]);
    assert.deepEqual([sidecar.counts[0].bytesIn, sidecar.counts[0].bytesOut], [0, 0]);
  });
