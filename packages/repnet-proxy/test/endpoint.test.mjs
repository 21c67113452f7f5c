import assert from 'node:assert/strict';
import { test } from 'node:test';
import { describeEndpoint, parseConnect, parseListen } from '../dist/endpoint.js';

for (const [text, expected] of [
  ['tcp://127.0.0.1:80', { kind: 'tcp', host: '127.0.0.1', port: 80 }],
  ['tcp://[::1]:0', { kind: 'tcp', host: '::1', port: 0 }],
  ['unix:/run/a.sock', { kind: 'unix', path: '/run/a.sock' }],
  ['unix:///run/a.sock', { kind: 'unix', path: '/run/a.sock' }],
  [
    'repnet://0.0.0.0:7000?loser=fin&replicaPort=9000',
    { kind: 'repnet', host: '0.0.0.0', port: 7000, loser: 'fin', replicaPort: 9000 },
  ],
]) {
  test(`--listen ${text}`, () => assert.deepEqual(parseListen(text), expected));
}

test('--connect takes syn and flow', () => {
  assert.deepEqual(parseConnect('syn://db:6379'), { kind: 'syn', host: 'db', port: 6379 });
  assert.deepEqual(parseConnect('flow://db:6379?replicaPort=1'), {
    kind: 'flow',
    host: 'db',
    port: 6379,
    replicaPort: 1,
  });
});

test('options of its own, in their units', () => {
  assert.deepEqual(parseConnect('flow://a:1?threshold=10KB&copyDelay=2ms&loser=fin&peer=plain'), {
    kind: 'flow',
    host: 'a',
    port: 1,
    threshold: 10_000,
    copyDelay: 2,
    loser: 'fin',
    peer: 'plain',
  });
  assert.deepEqual(parseListen('repnet://a:1?threshold=1MiB&loser=rst'), {
    kind: 'repnet',
    host: 'a',
    port: 1,
    threshold: 1_048_576,
    loser: 'rst',
  });
});

for (const text of [
  '',
  '127.0.0.1:80',
  'tcp://:80',
  'tcp://a:99999',
  'tcp://a',
  'unix:relative',
  'flow://a:1',
  'tcp://a:1?loser=fin',
  'repnet://a:1?loser=none',
  'repnet://a:1?pairing=token',
  'repnet://a:1?replicaPort=0',
  'repnet://a:1?x=1',
  'repnet://a:1?threshold=1',
  'repnet://a:1?copyDelay=1ms',
  'repnet://a:1?peer=plain',
  'repnet://a:1?replicaPort=1',
]) {
  test(`--listen '${text}' is refused`, () =>
    assert.throws(() => parseListen(text), { code: 'ERR_ENDPOINT', message: /^--listen: / }));
}

for (const text of [
  'tcp://a:0',
  'repnet://a:1',
  'flow://a:0',
  'flow://a:1?copyDelay=1',
  'syn://a:1?loser=kill',
  'flow://a:1?replicaPort=1',
  'syn://a:1?replicaPort=1',
]) {
  test(`--connect '${text}' is refused`, () =>
    assert.throws(() => parseConnect(text), { code: 'ERR_ENDPOINT', message: /^--connect: / }));
}

test('an endpoint is described as it is written', () => {
  for (const text of ['tcp://127.0.0.1:80', 'tcp://[::1]:80', 'unix:/run/a.sock'])
    assert.equal(describeEndpoint(parseListen(text)), text);
});
