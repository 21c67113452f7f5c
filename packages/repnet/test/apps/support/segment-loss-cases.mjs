/** Which packets are lost of which flows: see segment-loss-child.mjs. */

const SMALL = { requestLength: 1_000, replyLength: 2_000 };
const HALF = { ...SMALL, half: true };
const LARGE = { requestLength: 30_000, replyLength: 90_000 };
const FOREVER = 1_000_000_000;

const range = (from, to) => Array.from({ length: to - from + 1 }, (_, i) => from + i);
const one = (port, direction, packets, from, to = from) => [{ port, direction, packets, from, to }];

/** Of the connection (or connections) to a port: the handshake's packets, each early segment, the end. */
function singles(port, segments) {
  return [
    one(port, 'up', 'syn', 1),
    one(port, 'up', 'syn', 1, 2),
    one(port, 'down', 'synack', 1),
    one(port, 'down', 'synack', 1, 2),
    ...['up', 'down'].flatMap((direction) => [
      ...segments.map((n) => one(port, direction, 'segment', n)),
      one(port, direction, 'fin', 1),
      one(port, direction, 'fin', 1, 2),
      one(port, direction, 'rst', 1),
    ]),
  ];
}

/** From some packet on, nothing of one copy arrives. */
const deaths = (port) => [
  one(port, 'up', 'syn', 1, FOREVER),
  one(port, 'down', 'synack', 1, FOREVER),
  ...['up', 'down'].flatMap((direction) =>
    range(1, 8).map((n) => one(port, direction, 'segment', n, FOREVER)),
  ),
];

const flows = (faults, shapes, connects) =>
  shapes.flatMap((shape) =>
    connects.flatMap((connect) => faults.map((each) => ({ faults: each, shape, connect }))),
  );

/** Of either copy alone. */
const either = (segments) => [0, 1].flatMap((port) => [...singles(port, segments), ...deaths(port)]);

/** Nothing of the first connection ever reaches the server, so that a server nobody knows cannot prove itself: net's flow, too, hangs. */
const isNeverAccepted = ([{ port, direction, packets, from, to }]) =>
  port === 0 && from === 1 && to === FOREVER && (packets !== 'segment' || direction === 'up');

/** The same of both copies. */
const both = (segments) => singles(0, segments).map(([fault]) => [fault, { ...fault, port: 1 }]);

/** The first connection is established after a second, or after three. */
const lateFirst = [
  ['up', 'syn'],
  ['down', 'synack'],
].flatMap(([direction, packets]) => [one(0, direction, packets, 1), one(0, direction, packets, 1, 2)]);

/** The same where the first connection is established after a second. */
const behindLostSyn = (faults) => [...one(0, 'up', 'syn', 1), ...faults];

const EARLY = range(1, 12);
const ALL_ALONG = [1, 2, 3, 5, 8, 13, 21, 34, 55];
const KNOWN = { peer: 'repnet' };
const UNKNOWN = { peer: 'auto' };

/** name: { server, replicate, addresses, flows: [{ faults, shape, connect }] } */
export const CASES = {
  flow: {
    server: 'repnet',
    replicate: 'flow',
    flows: [
      ...flows(either(EARLY), [SMALL, HALF], [KNOWN]),
      ...flows(
        either(EARLY).filter((faults) => !isNeverAccepted(faults)),
        [SMALL, HALF],
        [UNKNOWN],
      ),
      ...flows(either(ALL_ALONG), [LARGE], [KNOWN]),
      ...flows(both(EARLY), [SMALL, HALF], [KNOWN]),
    ],
  },
  /** As of a server that has just begun, or has had to forget, or has a balancer before it. */
  'flow to a server that lets none begin with its second connection': {
    server: 'repnet',
    replicate: 'flow',
    addresses: [],
    flows: flows(lateFirst, [SMALL, HALF], [KNOWN, UNKNOWN]),
  },
  /** The first connection carries the flow, or the second, which has proved the server while the first has lost its SYN. */
  syn: {
    server: 'repnet',
    replicate: 'syn',
    flows: [
      ...flows(singles(0, EARLY), [SMALL, HALF], [KNOWN]),
      ...flows(
        [...singles(1, EARLY), ...deaths(1).slice(0, 2)].map(behindLostSyn),
        [SMALL, HALF],
        [KNOWN, { ...KNOWN, loser: 'fin' }],
      ),
    ],
  },
  'syn to an unmodified server': {
    server: 'plain',
    replicate: 'syn',
    flows: flows(singles(0, EARLY), [SMALL, HALF], [{ peer: 'plain' }, { peer: 'plain', loser: 'rst' }]),
  },
};
