import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PairMemory } from '../dist/memory/pair-memory.js';

const keyOf = (i) => `10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}|${1024 + i}`;

test('a key is remembered with its value while the memory has aged fewer times than it has generations', () => {
  const memory = new PairMemory(3);
  memory.set('a', 2);
  for (let age = 0; age < 3; age++) {
    assert.equal(memory.get('a'), 2);
    memory.age();
  }
  assert.equal(memory.get('a'), undefined);
  assert.equal(memory.size, 0);
});

test('the value set last is the one remembered, in whatever generation', () => {
  const memory = new PairMemory(3);
  memory.set('a', 1);
  memory.set('a', 2);
  assert.equal(memory.size, 1);
  memory.age();
  memory.set('a', 3);
  assert.equal(memory.get('a'), 3);
});

test('forgetting drops the oldest generation and no other', () => {
  const memory = new PairMemory(3);
  memory.set('old', 1);
  memory.age();
  memory.set('young', 1);
  memory.forget();
  assert.equal(memory.get('old'), undefined);
  assert.equal(memory.get('young'), 1);
});

test('65,536 keys are found among as many that are not there', () => {
  const memory = new PairMemory(5);
  for (let i = 0; i < 65_536; i++) {
    if (i % 20_000 === 19_999) memory.age();
    memory.set(keyOf(i), i % 4);
  }
  assert.equal(memory.size, 65_536);
  for (let i = 0; i < 65_536; i++) {
    assert.equal(memory.get(keyOf(i)), i % 4);
    assert.equal(memory.get(keyOf(65_536 + i)), undefined);
  }
});

test('keys that differ in one character, in order or in length are different keys', () => {
  const memory = new PairMemory(2);
  const keys = [
    '',
    '1',
    '12',
    '21',
    '1\0',
    '\0',
    'a|b',
    'b|a',
    '::1|80',
    '::1|81',
    '::2|80',
    '10.0.0.1|12',
    '10.0.0.11|2',
  ];
  for (const [i, key] of keys.entries()) memory.set(key, i);
  for (const [i, key] of keys.entries()) assert.equal(memory.get(key), i, JSON.stringify(key));
});
