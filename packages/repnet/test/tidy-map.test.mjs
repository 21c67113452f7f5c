/** A map that leaves nothing behind: in all else it is a Map. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { TidyMap } from '../dist/memory/tidy-map.js';

const key = fc.integer({ min: 0, max: 6 });
const operation = fc.oneof(
  fc.record({ set: key, value: fc.integer() }),
  fc.record({ delete: key }),
  fc.record({ get: key }),
  fc.record({ clear: fc.constant(true) }),
);

test('after any operations it holds what a Map holds, in its order', () => {
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 60 }), (operations) => {
      const [map, model] = [new TidyMap(), new Map()];
      for (const { set, value, delete: deleted, get, clear } of operations) {
        if (set !== undefined) for (const each of [map, model]) each.set(set, value);
        if (deleted !== undefined) for (const each of [map, model]) each.delete(deleted);
        if (get !== undefined) assert.equal(map.get(get), model.get(get));
        if (clear) for (const each of [map, model]) each.clear();
        assert.deepEqual([[...map.entries()], map.size], [[...model], model.size]);
        assert.equal(map.oldest, [...model.keys()][0]);
      }
    }),
  );
});

test('values may be deleted while they are walked through: the others are met once each', () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(key),
      fc.uniqueArray(key),
      fc.integer({ min: 1, max: 6 }),
      (keys, gone, at) => {
        const map = new TidyMap();
        for (const each of keys) map.set(each, each);
        const met = [];
        for (const each of map.values()) {
          met.push(each);
          if (met.length === at) for (const other of gone) map.delete(other);
        }
        const left = keys.slice(at).filter((each) => !gone.includes(each));
        assert.deepEqual(met, [...keys.slice(0, at), ...left]);
      },
    ),
  );
});
