/** `setTimeout` by a clock that a test moves; node:test's own has timers without `unref` on Node 20.11. */
export function movedClock() {
  const real = { setTimeout: globalThis.setTimeout, clearTimeout: globalThis.clearTimeout };
  const timers = new Set();
  let now = 0;
  globalThis.setTimeout = (done, milliseconds = 0, ...args) => {
    const timer = {
      due: now + milliseconds,
      run: () => done(...args),
      ref: () => timer,
      unref: () => timer,
      refresh: () => {
        timer.due = now + milliseconds;
        timers.add(timer);
        return timer;
      },
    };
    timers.add(timer);
    return timer;
  };
  globalThis.clearTimeout = (timer) => {
    if (!timers.delete(timer)) real.clearTimeout(timer);
  };
  return {
    tick(milliseconds) {
      now += milliseconds;
      for (const timer of [...timers].sort((a, b) => a.due - b.due))
        if (timer.due <= now && timers.delete(timer)) timer.run();
    },
    stop: () => Object.assign(globalThis, real),
  };
}
