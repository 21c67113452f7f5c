import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runNode } from './support/process.mjs';

for (const replicate of ['false', '"syn"', '"flow"']) {
  test(`the HTTP service answers with replicate ${replicate}`, async () => {
    const { code, stdout, stderr } = await runNode('examples/http-service.js', [replicate]);
    assert.equal(code, 0, stderr);
    const lines = stdout.trimEnd().split('\n');
    assert.deepEqual(lines.slice(0, 3), ['{"hello":"/first"}', '{"hello":"/second"}', '{"hello":"/third"}']);
    const { stats } = JSON.parse(lines[3]);
    const counter = { false: 'flowsPlain', '"syn"': 'flowsSyn', '"flow"': 'flowsFlow' }[replicate];
    assert.equal(stats[counter], 1, stdout); // one kept-alive connection
  });
}

// The paper's size, 1,000,000 numbers in about 50,000 mice, is what the example does by itself; two modes at a fifth of it
// and one at full size show the same without the minutes.
for (const [replicate, numbers] of [
  ['false', 200_000],
  ['syn', 1_000_000],
  ['flow', 200_000],
]) {
  test(`the bucket sort sorts ${numbers} numbers with replicate ${replicate}`, {
    timeout: 240_000,
  }, async () => {
    const { code, stdout, stderr } = await runNode('examples/bucket-sort/run.js', [
      '--replicate',
      replicate,
      '--numbers',
      String(numbers),
    ]);
    assert.equal(code, 0, stderr);
    const [, mice] = /^\w+ +(\d+) mice .* sorted$/m.exec(stdout) ?? assert.fail(stdout + stderr);
    assert.ok(Number(mice) >= numbers / 20 && Number(mice) <= numbers / 20 + 11);
    assert.equal(stderr, '');
  });
}
