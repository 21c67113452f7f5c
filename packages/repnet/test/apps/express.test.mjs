/** The Express service of the documentation (docs/howto/express.md), as printed there. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { before, test } from 'node:test';
import * as repnet from 'repnet';

const page = new URL('../../../../docs/howto/express.md', import.meta.url);
const here = new URL('.', import.meta.url).pathname;
let service;
let ask;

before(async () => {
  // Below the package, so that `repnet/http` and `express` are found as in an application that has them installed.
  const folder = mkdtempSync(join(here, 'express-'));
  try {
    for (const [, text, name] of readFileSync(page, 'utf8').matchAll(/```js\n(\/\/ (\w+\.js)\n.*?)```/gs))
      writeFileSync(join(folder, name), text);
    const require = createRequire(join(folder, 'test.js'));
    service = require('./service.js');
    ask = require('./client.js');
  } finally {
    rmSync(folder, { recursive: true });
  }
  await once(service.listen(0, '127.0.0.1'), 'listening');
});

test('the service of the page answers a replicated client', async (t) => {
  t.after(() => {
    service.closeAllConnections();
    service.close();
  });
  const replies = [];
  for (const name of ['a', 'b', 'c']) replies.push(await ask(service.address().port, `/hello/${name}`));
  assert.deepEqual(replies, ['{"hello":"a"}', '{"hello":"b"}', '{"hello":"c"}']);
  assert.ok(repnet.stats().flowsFlow >= 1, 'the agent replicates');
});
