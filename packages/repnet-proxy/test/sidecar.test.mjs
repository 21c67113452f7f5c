/** The sidecar without its process. */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
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
