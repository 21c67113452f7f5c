import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bucketSort } from './support/bucket-sort.mjs';
import { runNode } from './support/process.mjs';

for (const replicate of ['false', '"syn"', '"flow"']) {
  test(`the HTTP service answers with replicate ${replicate}`, async () => {
    const { code, stdout, stderr } = await runNode('examples/http-service.js', [replicate]);
    assert.equal(code, 0, stderr);
    const lines = stdout.trimEnd().split('\n');
    assert.deepEqual(lines.slice(0, 3), ['{"hello":"/first"}', '{"hello":"/second"}', '{"hello":"/third"}']);
    const { stats } = JSON.parse(lines[3]);
    // One kept-alive connection. The first RepSYN flow to a server is plain while it is found out what the server understands.
    const counter = { false: 'flowsPlain', '"syn"': 'flowsPlain', '"flow"': 'flowsFlow' }[replicate];
    assert.equal(stats[counter], 1, stdout);
  });
}

for (const replicate of ['false', 'syn', 'flow']) {
  test(`the bucket sort sorts with replicate ${replicate}`, async () => {
    const { stdout, mice } = await bucketSort(replicate, 12_000, 3);
    assert.ok(mice >= 600 && mice <= 603, stdout);
  });
}
