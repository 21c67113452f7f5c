/**
 * From a plan to the controls and back to a file. (tests/playground does it with every experiment
 * that comes with Tailcut.)
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fromPlan, reduced, toText } from '../dist/model.js';

const parameter = (name, usual, required = false) => ({ name, takes: '', default: usual, required, doc: '' });
const component = (group, name, parameters, isDefault = false) => ({
  group,
  name,
  summary: '',
  default: isDefault,
  parameters,
});
const components = [
  component('topology', 'star', [parameter('hosts', 8)]),
  component('traffic', 'poisson', [parameter('load', 0.5), parameter('receiver', null)], true),
  component(
    'transport',
    'tcp',
    [parameter('congestion', { kind: 'newreno' }), parameter('mss', '1460B')],
    true,
  ),
  component('transport.congestion', 'newreno', [], true),
  component('transport.congestion', 'cubic', [parameter('beta', 0.7), parameter('c', 0.4)]),
  component('queue', 'drop-tail', [parameter('limit', '100packets')], true),
  component('balance', 'ecmp', [], true),
  component('replicate', 'none', [], true),
  component('replicate', 'repflow', [parameter('copies', 2)]),
  component('horizon', 'horizon', [parameter('arrivals', '500ms')], true),
];
const config = (replicate, congestion) => ({
  topology: { kind: 'star', hosts: 3 },
  traffic: { kind: 'poisson', load: 0.5, receiver: null },
  horizon: { arrivals: '500ms' },
  scheme: {
    transport: { kind: 'tcp', congestion, mss: '1460B' },
    queue: { kind: 'drop-tail', limit: '100packets' },
    balance: { kind: 'ecmp' },
    replicate,
  },
});
const empty = { host: {}, switch: {}, faults: {}, series: {} };
const plan = {
  title: 'a "title"',
  question: 'Why?',
  baseline: 'TCP',
  schemes: ['TCP', 'two copies'],
  seeds: [3],
  measure: {},
  model: {},
  runs: [
    { scheme: 'TCP', config: { ...empty, ...config({ kind: 'none' }, { kind: 'newreno' }) } },
    {
      scheme: 'two copies',
      config: { ...empty, ...config({ kind: 'repflow', copies: 3 }, { kind: 'cubic', beta: 0.5, c: 0.4 }) },
    },
  ],
};

test('a file contains only values that are not defaults', () => {
  assert.equal(
    toText(fromPlan(plan), components),
    `title = "a \\"title\\""
question = """
Why?\\
"""
seeds = [3]

[topology]
kind = "star"
hosts = 3

[traffic]
kind = "poisson"

[schemes.TCP]

[schemes."two copies"]
transport = { kind = "tcp", congestion = { kind = "cubic", beta = 0.5 } }
replicate = { kind = "repflow", copies = 3 }

[report]
baseline = "TCP"
`,
  );
});

test('seeds 1 to n are written as n, and a single seed 1 is left out', () => {
  const text = (seeds) => toText(fromPlan({ ...plan, seeds }), components);
  assert.match(text([1, 2, 3]), /^seeds = 3$/m);
  assert.doesNotMatch(text([1]), /seeds/);
  assert.match(text([1, 3]), /^seeds = \[1, 3\]$/m);
});

test('a long question is wrapped and stays one paragraph', () => {
  const question = new Array(60).fill('word').join(' ');
  const lines = toText(fromPlan({ ...plan, question }), components).split('\n');
  const [from, to] = [lines.indexOf('question = """') + 1, lines.indexOf('"""')];
  const folded = lines.slice(from, to);
  assert.ok(folded.length > 2 && folded.every((line) => line.length <= 121 && line.endsWith('\\')));
  assert.equal(folded.map((line) => line.slice(0, -1)).join(''), question);
});

test('defaults are left out in items of lists, too', () => {
  const parts = [
    { kind: 'poisson', load: 0.5 },
    { kind: 'poisson', load: 0.1 },
  ];
  const mix = { kind: 'mix', parts };
  assert.deepEqual(
    reduced([...components, component('traffic', 'mix', [parameter('parts', null, true)])], 'traffic', mix),
    {
      kind: 'mix',
      parts: [{ kind: 'poisson' }, { kind: 'poisson', load: 0.1 }],
    },
  );
});

test('parameters without a description are kept', () => {
  assert.deepEqual(reduced(components, 'transport', { kind: 'unheard-of', speed: 1 }), {
    kind: 'unheard-of',
    speed: 1,
  });
});
