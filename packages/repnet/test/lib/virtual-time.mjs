/** Time that passes only when a test lets it: timers, immediates and `performance.now` of the whole process, in order, without waiting. */
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
    return a.due < b.due || (a.due === b.due && a.order < b.order);
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
    this.entry = this.time.at(this.time.now + this.delay, () => {
      this.entry = undefined;
      this.run();
    });
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
    /** Runs `run` at a time in milliseconds. */
    at(due, run) {
      const entry = { due: Math.max(due, time.now), order: order++, run };
      agenda.add(entry);
      return entry;
    },
    after(milliseconds, run) {
      return time.at(time.now + milliseconds, run);
    },
    /** Runs what is due until `limit`, or until `over` says so. */
    run(limit, over = () => false) {
      while (!over()) {
        while (immediates.length > 0) {
          const now = immediates;
          immediates = [];
          for (const each of now) each.run?.();
        }
        if (agenda.size === 0 || agenda.first.due > limit) break;
        const { due, run } = agenda.take();
        time.now = due;
        run?.();
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
      const immediate = { run: () => run(...args) };
      immediates.push(immediate);
      return immediate;
    },
    clearImmediate: (immediate) => {
      if (immediate !== undefined) immediate.run = undefined;
    },
  });
  return time;
}
