import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Arrival, Expected, LabPayload } from '../dist/lab-flows.js';

/** A period of 251 bytes, of which no eight are the same. */
const PERIOD = Buffer.from(Array.from({ length: 251 }, (_, at) => (at * at + 7 * at) % 256));
const payload = new LabPayload(PERIOD.toString('hex'));
const FROM = '10.0.0.1';

function flow(index, bytes, more = {}) {
  return { index, peer: FROM, bytes, port: 0, place: (31 * index) % PERIOD.length, ...more };
}

/** What is sent of a flow. */
function sent({ bytes, place }) {
  return Buffer.from(Array.from({ length: bytes }, (_, at) => PERIOD[(place + at) % PERIOD.length]));
}

function arrival(flows, from = FROM, port = 40_000) {
  return new Arrival(payload, new Expected(payload, flows), from, port);
}

test('a flow is known by its first bytes, wherever it is cut, and complete with its last', () => {
  const flows = [flow(0, 600), flow(1, 600), flow(2, 9)];
  for (const cut of [1, 7, 8, 9, 300, 599]) {
    const one = arrival(flows);
    const bytes = sent(flows[1]);
    one.read(bytes.subarray(0, cut));
    assert.equal(one.flow?.index, cut < 8 ? undefined : 1);
    assert.equal(one.complete, false);
    one.read(bytes.subarray(cut));
    assert.deepEqual([one.flow.index, one.complete, one.bytes], [1, true, 600]);
    one.end();
  }
});

test('a flow of a few bytes is known when nothing more comes', () => {
  const one = arrival([flow(0, 3), flow(1, 600)]);
  one.read(sent(flow(0, 3)));
  assert.equal(one.complete, false);
  one.end();
  assert.deepEqual([one.flow.index, one.complete], [0, true]);
});

test('a connection that brought nothing is no flow', () => {
  const one = arrival([flow(0, 3)]);
  one.end();
  assert.deepEqual([one.flow, one.complete], [undefined, false]);
});

test('flows of different hosts may begin alike, those of one host may not', () => {
  const same = [flow(0, 600), flow(4, 600, { place: 0, peer: '10.0.0.2' })];
  const one = arrival(same, '10.0.0.2');
  one.read(sent(same[0]));
  assert.equal(one.flow.index, 4);
  assert.throws(() => arrival([flow(0, 600), flow(5, 700, { place: 0 })]), /flows 0 and 5 begin alike/);
});

test('a byte that is wrong, lost or doubled is told of by its place', () => {
  const bytes = sent(flow(1, 600));
  const wrong = Buffer.from(bytes);
  wrong[400] ^= 1;
  assert.throws(() => arrival([flow(1, 600)]).read(wrong), /flow 1: its receiver: byte 400 is not/);
  const lost = Buffer.concat([bytes.subarray(0, 300), bytes.subarray(301)]);
  assert.throws(() => arrival([flow(1, 600)]).read(lost), /byte 30\d is not the one that was sent/);
  const doubled = Buffer.concat([bytes.subarray(0, 300), bytes.subarray(200)]);
  assert.throws(() => arrival([flow(1, 600)]).read(doubled), /byte 30\d is not the one that was sent/);
});

test('a mismatch is found wherever chunks begin and however long they are', () => {
  const all = flow(3, 3 * PERIOD.length);
  for (const offset of [0, 100, 250, 251, 400]) {
    const found = Buffer.from(sent(all).subarray(offset));
    assert.equal(payload.mismatch(all.place, offset, found), undefined);
    for (const at of [0, 150, found.length - 1]) {
      const spoilt = Buffer.from(found);
      spoilt[at] ^= 0x80;
      assert.equal(payload.mismatch(all.place, offset, spoilt), offset + at);
    }
  }
});

test('a flow that ends too early, goes on too long or comes twice is told of', () => {
  const early = arrival([flow(1, 600)]);
  early.read(sent(flow(1, 600)).subarray(0, 599));
  assert.throws(() => early.end(), /flow 1: its receiver: it ended after 599 of 600 bytes/);
  const long = arrival([flow(1, 600)]);
  assert.throws(() => long.read(sent(flow(1, 601))), /flow 1: its receiver: more bytes than were sent/);
  const expected = new Expected(payload, [flow(1, 600)]);
  const [first, second] = [40_000, 40_001].map((port) => new Arrival(payload, expected, FROM, port));
  first.read(sent(flow(1, 600)));
  assert.throws(() => second.read(sent(flow(1, 600))), /600 bytes from 10\.0\.0\.1:40001 that no flow/);
});

test('where the plan has chosen its port a flow comes from there', () => {
  const planned = [flow(1, 600, { port: 1_024 })];
  const right = arrival(planned, FROM, 1_024);
  right.read(sent(planned[0]));
  assert.equal(right.complete, true);
  const wrong = /flow 1: its receiver: it came from 10\.0\.0\.1:1025, and not from port 1024/;
  assert.throws(() => arrival(planned, FROM, 1_025).read(sent(planned[0])), wrong);
});
