/**
 * A wait for something to arrive. Time in which the process stands still (stopped, swapped out, collecting garbage) does not
 * count: timers run before what has arrived meanwhile is read, so that a plain one would take it for missing.
 */
const SLICES = 4;

/** As `setTimeout`, to be cleared by `clearTimeout`; does not keep the process alive. */
export function patientTimeout(done: () => void, milliseconds: number): NodeJS.Timeout {
  const slice = milliseconds / SLICES;
  let left = SLICES;
  let due = performance.now() + slice;
  const timer = setTimeout(() => {
    const now = performance.now();
    // A slice that took twice its time is waited for again: in that time at least, whatever has arrived is read.
    if (now - due < Math.max(slice, 1)) left--;
    if (left === 0) {
      done();
      return;
    }
    due = now + slice;
    timer.refresh();
  }, slice);
  return timer.unref();
}
