/**
 * Time that passes only when a test lets it: timers, immediates and `performance.now` of the whole process, in order, without waiting.
 * Work that is done `as` one of several processes, and the timers that it sets, wait while that process stands still; when it goes on,
 * timers that are due run first, then what has arrived, then immediates.
 */
const NAMES = ['setTimeout', 'clearTimeout', 'setImmediate', 'clearImmediate'];

/** A binary heap by time, and by order where that is the same. */
class Agenda {
  #heap = [];
  get size() {
    return this.#heap.length;
  }
  get first() {
    return this.#heap[0];
  }
  #before(a, b) {
    if (a.due !== b.due) return a.due < b.due;
    return a.phase === b.phase ? a.order < b.order : a.phase < b.phase;
  }
  add(entry) {
    const heap = this.#heap;
    let at = heap.push(entry) - 1;
    while (at > 0) {
      const up = (at - 1) >> 1;
      if (!this.#before(entry, heap[up])) break;
      heap[at] = heap[up];
      at = up;
    }
    heap[at] = entry;
  }
  take() {
    const heap = this.#heap;
    const [first] = heap;
    const last = heap.pop();
    if (heap.length === 0) return first;
    let at = 0;
    for (;;) {
      let down = 2 * at + 1;
      if (down >= heap.length) break;
      if (down + 1 < heap.length && this.#before(heap[down + 1], heap[down])) down++;
      if (!this.#before(heap[down], last)) break;
      heap[at] = heap[down];
      at = down;
    }
    heap[at] = last;
    return first;
  }
}

class Timer {
  constructor(time, delay, run) {
    Object.assign(this, { time, delay, run, entry: undefined });
    this.refresh();
  }
  refresh() {
    if (this.entry !== undefined) this.entry.run = undefined;
    this.entry = this.time.at(
      this.time.now + this.delay,
      () => {
        this.entry = undefined;
        this.run();
      },
      this.time.process,
    );
    return this;
  }
  ref() {
    return this;
  }
  unref() {
    return this;
  }
}

/** Takes the clock of the process until `stop`. */
export function virtualTime() {
  const real = Object.fromEntries(NAMES.map((name) => [name, globalThis[name]]));
  const agenda = new Agenda();
  let immediates = [];
  let order = 0;
  const time = {
    now: 0,
    /** The end whose work is done; undefined: the network's. */
    process: undefined,
    /** Runs `run` at a time in milliseconds. `phase`: among what is due at once. */
    at(due, run, process = undefined, phase = 0) {
      const entry = { due: Math.max(due, time.now), order: order++, phase, process, run };
      agenda.add(entry);
      return entry;
    },
    /** Runs `run` as work of `process`, { stillUntil }, when that reads what has arrived. */
    as(process, run) {
      return time.at(time.now, run, process, 1);
    },
    /** Runs `run` at once as work of `process`. */
    within(process, run) {
      const before = time.process;
      time.process = process;
      try {
        return run();
      } finally {
        time.process = before;
      }
    },
    after(milliseconds, run) {
      return time.at(time.now + milliseconds, run);
    },
    /** Runs what is due until `limit`, or until `over` says so. */
    run(limit, over = () => false) {
      while (!over()) {
        // Immediates come after all that is due and has arrived.
        if (immediates.length > 0 && !(agenda.size > 0 && agenda.first.due <= time.now)) {
          const now = immediates;
          immediates = [];
          for (const { run, process } of now) {
            if (run === undefined) continue;
            if (process?.stillUntil > time.now) time.at(process.stillUntil, run, process, 2);
            else time.within(process, run);
          }
          continue;
        }
        if (agenda.size === 0 || agenda.first.due > limit) break;
        const entry = agenda.take();
        time.now = entry.due;
        const { process, run } = entry;
        if (run === undefined) continue;
        if (process?.stillUntil > time.now) {
          entry.due = process.stillUntil;
          agenda.add(entry);
        } else time.within(process, run);
      }
    },
    stop() {
      Object.assign(globalThis, real);
      delete performance.now;
    },
  };
  const began = performance.now();
  performance.now = () => began + time.now;
  const end = (name) => (timer) => {
    if (!(timer instanceof Timer)) return real[name](timer);
    if (timer.entry !== undefined) timer.entry.run = undefined;
    timer.entry = undefined;
  };
  Object.assign(globalThis, {
    setTimeout: (run, delay = 0, ...args) => new Timer(time, Math.max(1, delay), () => run(...args)),
    clearTimeout: end('clearTimeout'),
    setImmediate: (run, ...args) => {
      const immediate = { run: () => run(...args), process: time.process };
      immediates.push(immediate);
      return immediate;
    },
    clearImmediate: (immediate) => {
      if (immediate !== undefined) immediate.run = undefined;
    },
  });
  return time;
}
