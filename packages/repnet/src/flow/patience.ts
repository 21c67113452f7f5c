/**
 * A wait for something to arrive that allows for a process that stands still (stopped, swapped out, collecting garbage):
 * timers run before what has arrived meanwhile is read, so that a plain one would take it for missing.
 */
const SLICES = 4;

/** Times `pairTimeout` for which a peer that is known to have both connections of a flow may stand still. */
const WORD_WAITS = 20;
const LONGEST = 2 ** 31 - 1;

/**
 * Milliseconds for which word of such a peer is waited for where its absence would be taken for the orderly end of a
 * stream. Silence does not tell a process that stands still from a path that is dead, and an end cannot be taken back.
 */
export function wordTimeout(pairTimeout: number): number {
  return Math.min(WORD_WAITS * pairTimeout, LONGEST);
}

/**
 * As `setTimeout`, to be cleared by `clearTimeout`; does not keep the process alive, unless it is referenced. `done` runs when what had arrived by then
 * is read, after a further quarter of the time if the process stood still at the end; it may still run once after
 * `clearTimeout`, and has to ask whether it is wanted.
 */
export function patientTimeout(done: () => void, milliseconds: number): NodeJS.Timeout {
  const slice = milliseconds / SLICES;
  const end = performance.now() + milliseconds;
  let due = end - milliseconds + slice;
  let grace = true;
  const timer = setTimeout(() => {
    const now = performance.now();
    const stoodStill = now - due >= Math.max(slice, 1);
    due = now + slice;
    if (now < end - 1 || (stoodStill && grace)) {
      if (now >= end - 1) grace = false;
      timer.refresh();
    } else setImmediate(done);
  }, slice);
  return timer.unref();
}
