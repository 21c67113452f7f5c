/**
 * The law of design.md, over connections of memory and a virtual clock: what net would have delivered is delivered, under any one fault
 * at any time of a flow's life, while the processes of both ends stand still now and then. Each script is run without a fault, and again with several. By default 1,000 flows;
 * REPNET_MODEL_FLOWS=100000 is the long form (`make soak`), and REPNET_FAULT_SEED draws others.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PRIMARY, REPLICA } from '../dist/flow/machine.js';
import { FlowPair } from './lib/flow-pair.mjs';
import { randomFrom } from './lib/random.mjs';
import { virtualTime } from './lib/virtual-time.mjs';

const FLOWS = Number(process.env.REPNET_MODEL_FLOWS ?? 1_000);
const SEED = Number(process.env.REPNET_FAULT_SEED ?? 20261127);
const FAULTS_PER_SCRIPT = 4;
const THRESHOLD = 1_000;
/** Milliseconds of the virtual clock after which a flow hangs, beyond what it takes without a fault. */
const PATIENCE = 30_000;
/** Milliseconds for which the process of one end stands still. */
const LONGEST_STALL = 10_000;
/** And that it may take without a fault. */
const LONGEST = 100_000;

/** The script of two applications: { exchanges: [{ request, reply, pause, waits }], ender, behind }. */
class Play {
  #sent = 0;
  #answered = 0;

  constructor(script, random) {
    Object.assign(this, { script, random });
    const sum = (name) => {
      let total = 0;
      return script.exchanges.map((each) => {
        total += each[name];
        return total;
      });
    };
    this.requests = sum('request');
    this.replies = sum('reply');
  }

  behind() {
    return this.random() < this.script.behind;
  }

  /** Something has come to an end, or it is connected. */
  heard(end) {
    if (end.destroyed) return;
    if (end.side === 0) this.#client(end);
    else this.#server(end);
  }

  #client(end) {
    const { exchanges, ender } = this.script;
    while (this.#sent < exchanges.length) {
      const before = this.#sent - 1;
      if (before >= 0 && exchanges[before].waits && end.received < this.replies[before]) return;
      const { request, pause } = exchanges[this.#sent];
      if (pause > 0 && this.#paused !== this.#sent) {
        if (this.#pausing) return;
        this.#pausing = true;
        setTimeout(() => {
          this.#pausing = false;
          this.#paused = this.#sent;
          this.heard(end);
        }, pause);
        return;
      }
      this.#sent++;
      end.write(request);
    }
    if (ender === 'early' || end.ended || (ender === 'client' && end.received === this.replies.at(-1)))
      end.end();
  }
  #paused = -1;
  #pausing = false;

  #server(end) {
    while (this.#answered < this.requests.length && end.received >= this.requests[this.#answered]) {
      const { reply } = this.script.exchanges[this.#answered++];
      end.write(reply);
    }
    if (end.ended || (this.script.ender === 'server' && this.#answered === this.requests.length)) end.end();
  }
}

function draw(random) {
  const pick = (values) => values[Math.floor(random() * values.length)];
  const small = () => 1 + Math.floor(random() * THRESHOLD);
  const near = () => THRESHOLD + pick([-1, 0, 1, 2]);
  const large = () => THRESHOLD + Math.floor(random() * pick([1_000, 20_000, 200_000]));
  const sizes = pick([[small], [small], [small, near], [small, near, large], [large]]);
  const size = () => pick(sizes)();
  const count = pick([1, 1, 2, 5, 20, random() < 0.2 ? 300 : 10]);
  const waits = pick([1, 1, 0.5, 0]);
  const exchanges = Array.from({ length: sizes.includes(large) ? Math.min(count, 12) : count }, () => ({
    request: size(),
    reply: size(),
    pause: pick([0, 0, 0, 2, 60, 400]),
    waits: random() < waits,
  }));
  const shape = () => ({
    latency: pick([0.05, 0.5, 3, 40]),
    rate: pick([100, 1_000, 100_000]),
    room: pick([4_096, 65_536, 1 << 20]),
    segment: pick([300, 1_460, 16_384]),
    reads: pick([1, 4, 64]),
  });
  const first = shape();
  return {
    exchanges,
    ender: pick(['client', 'client', 'server', 'early']),
    behind: pick([0, 0, 0.1]),
    shapes: [first, random() < 0.5 ? { ...first } : shape()],
    delay: pick([0, 0, 0, 1, 30]),
    seed: Math.floor(random() * 2 ** 31),
  };
}

function drawFault(random, length) {
  const pick = (values) => values[Math.floor(random() * values.length)];
  const kind = pick(['silence', 'silence', 'while', 'reset', 'fin']);
  return {
    copy: pick([PRIMARY, REPLICA]),
    kind: kind === 'while' ? 'silence' : kind,
    sides: kind === 'fin' ? [pick([0, 1])] : pick([[0], [1], [0, 1]]),
    ms: kind === 'while' ? pick([5, 100, 700, 2_000]) : Number.POSITIVE_INFINITY,
    at: random() * length,
    stalls: Array.from({ length: pick([0, 1, 1, 2]) }, () => ({
      side: pick([0, 1]),
      at: random() * length,
      ms: random() * pick([20, 300, 2_000, LONGEST_STALL]),
    })),
  };
}

/** Plays a script, with or without a fault: what is wrong with it, if anything, whether it completed, and how long it took. */
function play(time, script, fault, usual = LONGEST) {
  const began = time.now;
  const pair = new FlowPair(time, new Play(script, randomFrom(script.seed)), {
    ...script,
    threshold: THRESHOLD,
  });
  let [paired, carried, established] = [true, true, true];
  if (fault !== undefined)
    time.at(began + fault.at, () => {
      ({ paired } = pair);
      established = pair.ends[0].flow.tx.copies[PRIMARY] !== 'pending';
      // A message from before the second connection may be on the first alone.
      carried = paired && pair.ends.every(({ flow }) => flow.tx.hasAll(REPLICA));
      pair.paths[fault.copy].strike(fault);
    });
  let still = 0;
  for (const { side, at, ms } of fault?.stalls ?? []) {
    still += ms;
    const process = pair.processes[side];
    time.at(began + at, () => {
      process.stillUntil = Math.max(process.stillUntil, time.now + ms);
    });
  }
  time.run(began + 3 * (usual + still) + PATIENCE, () => pair.over);
  const length = time.now - began;
  const result = { ...judge(pair, script.exchanges, fault, { paired, carried, established }), length };
  // What is still to come of it disturbs no other flow.
  for (const end of pair.ends) if (end.flow !== undefined && !end.destroyed) end.destroy(new Error('hung'));
  time.run(time.now + 200_000);
  return result;
}

function judge(pair, exchanges, fault, { paired, carried, established }) {
  const totals = ['request', 'reply'].map((name) => exchanges.reduce((sum, each) => sum + each[name], 0));
  const ofFirst = fault?.copy === PRIMARY;
  for (const end of pair.ends) {
    if (end.wrong) return { complaint: `end ${end.side}: ${end.wrong}` };
    // net, too, takes an end of its one connection that nobody meant for the stream's.
    if (fault?.kind === 'fin' && ofFirst && !paired) continue;
    const peer = pair.ends[1 - end.side];
    const gaveUp = peer.error !== undefined && !peer.finished;
    if (
      end.ended &&
      (end.received > totals[1 - end.side] || (end.received < totals[1 - end.side] && !gaveUp))
    )
      return { complaint: `end ${end.side}: an end after ${end.received} of ${totals[1 - end.side]}` };
  }
  if (pair.ends.every((end) => end.ended && end.finished && end.error === undefined))
    return { complete: true };
  const how = pair.ends
    .map(({ side, received, ended, finished, error, destroyed }) => {
      const state = [ended && 'ended', finished && 'finished', error?.code, destroyed ? 'closed' : 'hangs'];
      return `end ${side}: ${received} of ${totals[1 - side]}, ${state.filter(Boolean).join(', ')}`;
    })
    .join('; ');
  const forever = fault?.ms === Number.POSITIVE_INFINITY;
  if (!ofFirst || !forever) {
    // The server cannot tell an end that nobody meant from the client's, which is closed, and says that it misses its own.
    const unmeant = fault?.kind === 'fin' && !paired && pair.ends[1].error?.code === 'ERR_REPNET_TRUNCATED';
    return unmeant && pair.ends[0].finished ? {} : { complaint: `not complete: ${how}` };
  }
  const doubled = exchanges.every(
    ({ request, reply, waits }) => request <= THRESHOLD && reply <= THRESHOLD && waits,
  );
  if (carried && doubled)
    return { complaint: `not complete, though both connections carry everything: ${how}` };
  // net is silent where its one connection is, and at the end that a reset does not reach, unless the second tells that.
  // A reset in the handshake is silence here, and a server that stands still meanwhile is not waited for, as net's would not be.
  const isSilent = fault.kind === 'silence' || (!established && fault.stalls?.length > 0);
  const mayHang = isSilent || (fault.sides.length === 1 && !paired);
  // A connection that was reset in its handshake is no server's: with net, too, nobody has a socket there.
  const hangs = pair.ends.some(({ destroyed, flow }) => flow !== undefined && !destroyed);
  return hangs && !mayHang ? { complaint: `hangs: ${how}` } : {};
}

/** The same script with less in it, about which there still is a complaint. */
function shrink(time, script, fault) {
  const simpler = ({ exchanges }) => [
    ...exchanges.map((_, n) => ({ exchanges: [...exchanges.slice(0, n), ...exchanges.slice(n + 1)] })),
    ...exchanges.map((each, n) => ({
      exchanges: [...exchanges.slice(0, n), { ...each, pause: 0 }, ...exchanges.slice(n + 1)],
    })),
    { behind: 0 },
    { delay: 0 },
  ];
  for (;;) {
    const less = simpler(script)
      .map((change) => ({ ...script, ...change }))
      .filter((each) => each.exchanges.length > 0 && JSON.stringify(each) !== JSON.stringify(script))
      .find((each) => play(time, each, fault).complaint !== undefined);
    if (less === undefined) return script;
    script = less;
  }
}

/** Runs `work` by a virtual clock. */
function virtually(work) {
  const time = virtualTime();
  try {
    return work(time);
  } finally {
    time.stop();
  }
}

test(`${FLOWS} flows, each with one fault at most: what net would have delivered is delivered`, () => {
  const random = randomFrom(SEED);
  const seen = { completedBySecond: 0, completed: 0, failed: 0 };
  virtually((time) => {
    for (let flows = 0; flows < FLOWS; ) {
      const script = draw(random);
      let usual;
      for (let n = 0; n <= FAULTS_PER_SCRIPT; n++, flows++) {
        const fault = n === 0 ? undefined : drawFault(random, usual * 1.05);
        const { complaint, complete, length } = play(time, script, fault, usual);
        usual ??= length;
        if (complaint !== undefined) {
          const least = shrink(time, script, fault);
          const said = play(time, least, fault).complaint ?? complaint;
          // JSON has no word for a fault without an end.
          const says = (what) =>
            JSON.stringify(what, (_, value) => (value === Infinity ? 'Infinity' : value));
          assert.fail(`REPNET_FAULT_SEED=${SEED}: ${said}\n${says(fault ?? 'no fault')}\n${says(least)}`);
        }
        if (complete !== true) seen.failed++;
        else if (fault?.copy === PRIMARY && fault.ms === Number.POSITIVE_INFINITY) seen.completedBySecond++;
        else seen.completed++;
      }
    }
  });
  for (const [what, flows] of Object.entries(seen))
    assert.ok(flows > FLOWS / 100, `${what}: ${JSON.stringify(seen)}`);
});

const STEADY = { rate: 1_000, room: 4_096, segment: 1_460, reads: 4 };
const NEAR = { ...STEADY, latency: 0.05 };
const FAR = { ...STEADY, latency: 40 };
const FOREVER = Number.POSITIVE_INFINITY;
const one = { request: 700, reply: 500, pause: 0, waits: true };
const script = {
  exchanges: [one],
  ender: 'client',
  behind: 0,
  shapes: [NEAR, NEAR],
  delay: 0,
  seed: 1,
};

test('small messages go on when the first path has fallen silent and takes nothing more', () => {
  const kept = { ...script, exchanges: Array.from({ length: 40 }, () => one) };
  const fault = { copy: PRIMARY, kind: 'silence', sides: [0, 1], ms: FOREVER, at: 5 };
  assert.equal(virtually((time) => play(time, kept, fault)).complete, true);
});

test('a first connection that is reset before the server has it fails at the client alone, as with net', () => {
  const elephant = { ...script, exchanges: [{ ...one, request: 12_613 }], delay: 30 };
  const fault = { copy: PRIMARY, kind: 'reset', sides: [0, 1], ms: FOREVER, at: 0.12 };
  const { complaint, complete } = virtually((time) => play(time, elephant, fault));
  assert.deepEqual([complaint, complete], [undefined, undefined]);
});

for (const kind of ['silence', 'reset'])
  test(`the first connection brings what an application wrote that closed before it was established: ${kind} of the second`, () => {
    const late = { ...script, ender: 'server', shapes: [FAR, NEAR] };
    // The reply has left, and word that it was read has not arrived.
    const fault = { copy: REPLICA, kind, sides: [0], ms: FOREVER, at: 1.1 };
    const outcomes = [1, 1.5, 2, 2.5, 3].map((at) => virtually((time) => play(time, late, { ...fault, at })));
    assert.deepEqual(
      outcomes.map(({ complaint, complete }) => complaint ?? complete),
      outcomes.map(() => true),
    );
  });

test('the first connection, still to come, tells the end of a flow whose second was reset before it', () => {
  const narrow = { ...STEADY, segment: 300, reads: 1 };
  const late = {
    ...script,
    exchanges: [{ ...one, request: 999, reply: 1_000 }],
    ender: 'server',
    // The reply waits for its application when the second is reset.
    behind: 0.1,
    seed: 1_115_044_788,
    shapes: [
      { ...narrow, latency: 3 },
      { ...narrow, latency: 0.05 },
    ],
    delay: 1,
  };
  const fault = { copy: REPLICA, kind: 'reset', sides: [1], ms: FOREVER };
  const times = [2.5, 3, 4, 5];
  const outcomes = times.map((at) => virtually((time) => play(time, late, { ...fault, at })));
  assert.deepEqual(
    outcomes.map(({ complaint, complete }) => complaint ?? complete),
    outcomes.map(() => true),
  );
});

test('a reply that the second connection took, and the first has not, is whole when the second falls silent', () => {
  const slow = { latency: 40, rate: 1_000, room: 4_096, segment: 1_460, reads: 4 };
  const wide = { latency: 3, rate: 100, room: 1_048_576, segment: 16_384, reads: 4 };
  const exchanges = [
    { request: 129_185, reply: 941, pause: 0, waits: false },
    { request: 12_568, reply: 7_828, pause: 0, waits: false },
  ];
  const piped = {
    ...script,
    exchanges,
    ender: 'early',
    early: false,
    shapes: [slow, wide],
    seed: 932_984_244,
  };
  const fault = { copy: REPLICA, kind: 'silence', sides: [1], ms: FOREVER, at: 767.326 };
  const { complaint, complete } = virtually((time) => play(time, piped, fault));
  assert.equal(complaint ?? complete, true);
});
