/** The state machine that closes a flow: what holds whatever the flow is like and in whatever order events come. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { PRIMARY, REPLICA } from '../dist/flow/machine.js';
import { BOTH_OPEN, NAMES, Script } from './lib/closing-script.mjs';

const bool = fc.boolean();
const copyState = fc.constantFrom('pending', 'open', 'gone');
const anyFacts = fc
  .record({
    ...Object.fromEntries(Object.keys(BOTH_OPEN).map((name) => [name, bool])),
    legs: fc.tuple(bool, bool),
    copies: fc.tuple(copyState, copyState),
    done: fc.tuple(bool, bool),
  })
  .map((facts) => ({ ...facts, sentAll: facts.sentAll && facts.wroteAll }));
const copy = fc.constantFrom(PRIMARY, REPLICA);
const anyEvent = fc.oneof(
  fc.record({ type: fc.constant('close'), reset: bool }),
  fc.record({ type: fc.constant('drained'), unread: bool }),
  fc.record({ type: fc.constantFrom('exit', 'written', 'stuck') }),
  fc.record({ type: fc.constant('ended'), copy }),
  fc.record({ type: fc.constant('lose'), copy, failed: bool }),
  fc.record({ type: fc.constant('change'), facts: anyFacts }),
);

/** Events that an action promises. */
const PROMISES = { drain: 'drained', linger: 'timeUp' };

test('a flow closes once, in bounded time, and ends each connection once', () => {
  fc.assert(
    fc.property(anyFacts, fc.array(anyEvent, { maxLength: 12 }), bool, (facts, events, reset) => {
      const flow = new Script(facts);
      const log = [];
      const promised = [];
      const step = ({ type, ...details }) => {
        const before = flow.state;
        if (type === 'change') {
          // Which connections there are changes by actions and losses alone.
          flow.facts = { ...details.facts, legs: flow.facts.legs };
          return;
        }
        const had = [...flow.facts.legs];
        if (type === 'lose' && !had[details.copy]) return;
        const actions = type === 'lose' ? flow.lose(details.copy, details.failed) : flow.on(type, details);
        if (before === 'closed') assert.deepEqual(actions, [], 'no action after the flow is closed');
        for (const action of actions) {
          const event = PROMISES[action.split(' ')[0]];
          if (event !== undefined) promised.push({ type: event, unread: false });
          const ends = /^(abort|close) (first|second)$/.exec(action);
          if (ends) assert.equal(had[NAMES.indexOf(ends[2])], true, `${action}, which is gone`);
        }
        log.push(...actions);
      };
      for (const event of events) step(event);
      step({ type: 'close', reset });
      // Time passes: what was promised occurs, and nothing else.
      let steps = 0;
      for (let next = promised.shift(); next !== undefined; next = promised.shift()) {
        step(next);
        steps++;
      }
      const count = (pattern) => log.filter((action) => pattern.test(action)).length;
      assert.ok(steps <= 2, 'one drain and one lingering at most');
      assert.equal(flow.state, 'closed');
      assert.deepEqual(flow.facts.legs, [false, false], 'no connection is left');
      assert.equal(count(/^settle/), 1, 'closed once');
      assert.match(log.at(-1), /^settle/, 'the last action');
      assert.equal(count(/^decide/), 1, 'one decision');
      assert.ok(count(/^linger/) <= 1 && count(/^drain$/) <= 1);
      for (const name of NAMES) assert.ok(count(new RegExp(`^(abort|close) ${name}$`)) <= 1, name);
      assert.ok(count(/^finish/) <= 1 && count(/^awaitWritten/) <= 1);
      assert.ok(count(/^(abort|close) second$|^keepSecond/) <= 1);
      assert.ok(count(/^(abort|close) first$|^setAside/) <= 1);
    }),
    { seed: 1, numRuns: 20_000 },
  );
});

test('a connection that was finished is not aborted before the time is up', () => {
  fc.assert(
    fc.property(anyFacts, fc.array(anyEvent, { maxLength: 12 }), bool, (facts, events, reset) => {
      const flow = new Script(facts);
      const finished = new Set();
      for (const { type, ...details } of [{ type: 'close', reset }, ...events]) {
        if (type === 'change') {
          flow.facts = { ...details.facts, legs: flow.facts.legs };
          continue;
        }
        if (type === 'lose' && !flow.facts.legs[details.copy]) continue;
        const actions = type === 'lose' ? flow.lose(details.copy, details.failed) : flow.on(type, details);
        for (const action of actions) {
          if (action.startsWith('finish')) finished.add('second');
          if (action === 'awaitWritten') finished.add('first');
          if (action.startsWith('abort')) assert.equal(finished.has(action.split(' ')[1]), false, action);
        }
      }
    }),
    { seed: 2, numRuns: 20_000 },
  );
});
