/** A flow whose second connection fails between the close of its socket and the word to its peer. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Closing } from '../dist/flow/closing.js';
import { PRIMARY, REPLICA } from '../dist/flow/machine.js';
import { Archive } from '../dist/memory/archive.js';

/** Resolves when the event loop has gone round. */
const turn = () => new Promise((resolve) => setImmediate(resolve));

/** A client's flow whose second connection has carried all so far, while its first is still to come. */
function flow() {
  const abandoned = [];
  const kept = [];
  const client = {
    copyAbandoned: (copy) => abandoned.push(copy),
    keepForFirst: (archive) => kept.push(archive),
  };
  const archive = new Archive();
  return {
    abandoned,
    kept,
    archive,
    client,
    joined: true,
    legs: [undefined, { resumeReading() {} }],
    options: { pairTimeout: 1_000, loser: 'rst' },
    outer: { destroyed: true },
    receiver: { ended: false, leftUnread: false },
    rx: { done: [false, false] },
    sender: { close() {}, isSent: false, takeArchive: () => archive, turned: true },
    tx: { archived: true, copies: ['pending', 'open'], offset: 0, total: -1, hasAll: () => false },
  };
}

test('a first connection that is still to come carries all that was written when the second fails meanwhile', async () => {
  const over = flow();
  let parted = false;
  const closing = new Closing(over, () => {
    parted = true;
  });
  closing.on({ type: 'close', reset: false });
  assert.deepEqual(over.kept, [over.archive]);
  assert.equal(parted, false, 'what the system has is still being read');
  over.legs[REPLICA] = undefined;
  closing.on({ type: 'gone', failed: true });
  await turn();
  await turn();
  await turn();
  assert.equal(parted, true);
  assert.equal(over.abandoned.includes(PRIMARY), false);
});

test('a first connection that is still to come is given up when the second has brought all', async () => {
  const over = flow();
  const closing = new Closing(over, () => {});
  closing.on({ type: 'close', reset: false });
  over.legs[REPLICA] = undefined;
  closing.on({ type: 'gone', failed: false });
  await turn();
  await turn();
  await turn();
  assert.equal(over.abandoned.includes(PRIMARY), true);
});
