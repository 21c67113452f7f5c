import assert from 'node:assert/strict';
import { test } from 'node:test';
import { key, Raw, same, typed, write } from '../dist/toml.js';

test('values are written as TOML', () => {
  assert.equal(write('a "b"\n'), String.raw`"a \"b\"\n"`);
  assert.equal(write([1, 0.5, true]), '[1, 0.5, true]');
  assert.equal(write({ kind: 'ecn', receiver: null, 'two words': 1 }), '{ kind = "ecn", "two words" = 1 }');
  assert.equal(write({}), '{}');
  assert.equal(write(1e21), '1000000000000000000000');
  assert.equal(key('RepFlow, delayed'), '"RepFlow, delayed"');
});

test('typed text may have quotes or not', () => {
  const written = (text) => write(typed(text));
  assert.equal(written('100packets'), '"100packets"');
  assert.equal(written('10 MB'), '"10 MB"');
  assert.equal(written(' 0.5 '), '0.5');
  assert.equal(written('true'), 'true');
  assert.equal(written('[1, 2]'), '[1, 2]');
  assert.equal(written('{ kind = "cubic" }'), '{ kind = "cubic" }');
  assert.equal(written('"said"'), '"said"');
});

test('tables are equal in any order of keys, and null equals a missing key', () => {
  assert.ok(same({ a: 1, b: [{ c: 'x' }] }, { b: [{ c: 'x' }], a: 1, d: null }));
  assert.ok(!same({ a: 1 }, { a: 2 }));
  assert.ok(!same([1], [1, 2]));
  assert.ok(!same(new Raw('1'), 1));
});
