/** `setTimeout`, `setInterval` and `performance.now` by a clock that a test moves; node:test's own timers have no `unref` on Node 20.11. */
const NAMES = ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'];

export function movedClock() {
  const real = Object.fromEntries(NAMES.map((name) => [name, globalThis[name]]));
  const timers = new Set();
  const began = performance.now();
  let now = 0;
  const begin =
    (again) =>
    (done, milliseconds = 0, ...args) => {
      const timer = {
        due: now + milliseconds,
        run() {
          if (again) timer.due += milliseconds;
          else timers.delete(timer);
          done(...args);
        },
        ref: () => timer,
        unref: () => timer,
        refresh() {
          timer.due = now + milliseconds;
          timers.add(timer);
          return timer;
        },
      };
      timers.add(timer);
      return timer;
    };
  const end = (name) => (timer) => {
    if (!timers.delete(timer)) real[name](timer);
  };
  Object.assign(globalThis, {
    setTimeout: begin(false),
    setInterval: begin(true),
    clearTimeout: end('clearTimeout'),
    clearInterval: end('clearInterval'),
  });
  performance.now = () => began + now;
  return {
    /** Runs what is due within so many milliseconds, in order. */
    tick(milliseconds) {
      const until = now + milliseconds;
      for (;;) {
        const [next] = [...timers].sort((a, b) => a.due - b.due);
        if (next === undefined || next.due > until) break;
        now = Math.max(now, next.due);
        next.run();
      }
      now = until;
    },
    stop() {
      Object.assign(globalThis, real);
      // What the prototype has is seen again.
      delete performance.now;
    },
  };
}
