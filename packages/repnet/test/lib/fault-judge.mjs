/**
 * Faults for the flows of a fault bench, drawn at random, and what may come of them: never a byte lost, doubled or mixed, and nothing
 * that plain TCP would not show.
 */
import fc from 'fast-check';

export const KINDS = ['cut', 'rst', 'fin', 'stall', 'pause'];
/** Around the borders of hello (76), answer (24), record headers (10) and messages (1,016; 2,000). */
export const POSITIONS = [
  0, 1, 23, 24, 25, 33, 34, 75, 76, 77, 86, 87, 100, 500, 1_015, 1_016, 1_090, 1_102, 1_500, 2_034,
];

export const PAIR_TIMEOUT = 500;

/** The second copy fails; or its hello or the answer is late by more than T, and it may have been given up. */
const secondIsStruck = (faults) =>
  faults.some(
    (f) =>
      f.copy === 1 &&
      (f.kind !== 'pause' || (f.ms > PAIR_TIMEOUT && f.at < (f.direction === 'up' ? 76 : 24))),
  );

/** Both copies struck: what plain TCP would show for the first copy alone is the most that may be asked. */
export function acceptBoth(outcome, faults) {
  const first = faults.filter((f) => f.copy === 0 && f.kind !== 'pause');
  // libuv reports a reset that follows data as an end of file, so that a reset, too, may look like a bare FIN.
  const bareEnd = first.some((f) => f.kind !== 'stall') && faults.some((f) => f.copy === 1);
  if (outcome.wrong !== undefined) {
    // Residual case, which plain net has too: a FIN that is all there is.
    if (bareEnd && /silent end/.test(outcome.wrong)) return undefined;
    return outcome.wrong;
  }
  if (outcome.hung && !acceptBoth.mayHang(faults)) return 'hung';
  return undefined;
}
acceptBoth.mayHang = (faults) =>
  faults.some((f) => f.kind === 'stall') &&
  faults.some((f) => f.copy === 0 && f.kind !== 'pause') &&
  secondIsStruck(faults);

const fault = fc.record({
  copy: fc.constantFrom(0, 1),
  direction: fc.constantFrom('up', 'down'),
  kind: fc.constantFrom(...KINDS),
  at: fc.oneof(fc.constantFrom(...POSITIONS), fc.nat(4_000), fc.nat(100_000)),
  // T is 500, a hello is waited for 200 at least, and the wait for the second connection is 800.
  ms: fc.constantFrom(1, 10, 40, 120, 250, 600, 1_100),
});
export const scenario = fc.record({
  faults: fc.uniqueArray(fault, { maxLength: 3, selector: (f) => `${f.copy}${f.direction}` }),
  shape: fc.record({
    requestLength: fc.oneof(fc.nat(3_000), fc.nat(60_000)),
    replyLength: fc.oneof(fc.nat(5_000), fc.nat(95_000)),
    half: fc.boolean(),
  }),
});

/** Hedged: the second connection may never have begun, so that no more may be asked of a first that is struck than of net. */
export function acceptHedged(outcome, faults) {
  const first = faults.filter((f) => f.copy === 0 && f.kind !== 'pause');
  if (first.length === 0) return outcome.wrong ?? (outcome.complete ? undefined : 'not complete');
  if (first.some((f) => f.kind !== 'stall') && /silent end/.test(outcome.wrong)) return undefined;
  return outcome.wrong ?? (outcome.hung && !acceptHedged.mayHang(faults) ? 'hung' : undefined);
}
acceptHedged.mayHang = (faults) =>
  faults.some((f) => f.copy === 0 && f.kind === 'stall') || acceptBoth.mayHang(faults);

/** `accept`, and whatever is struck: where one of the two connections is not touched at all, the flow completes. */
export function whole(accept) {
  return Object.assign(
    (outcome, faults) => {
      if (new Set(faults.map((f) => f.copy)).size < 2 && !outcome.complete)
        return outcome.wrong ?? 'one copy was untouched, and yet not complete';
      return accept(outcome, faults);
    },
    { mayHang: accept.mayHang },
  );
}
