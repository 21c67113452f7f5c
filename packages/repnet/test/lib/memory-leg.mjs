/** A flow on connections made of memory. */
import { Flow } from '../../dist/flow/flow.js';
import { RecordParser } from '../../dist/wire.js';

export function newFlow(threshold = 1_000, start = {}) {
  const outer = { deliver: () => true, destroy() {}, touch() {} };
  return new Flow(outer, { threshold, lull: 50 }, start);
}

/**
 * A connection that keeps what it is given, by reference, as the system does until it has taken it: at once, or (`slow`)
 * when it is told to.
 */
export function memoryLeg(copy, { slow = false } = {}) {
  const kept = [];
  const waiting = [];
  const take = (parts, done) => {
    kept.push(...parts);
    if (slow) waiting.push(done);
    else done?.();
  };
  return {
    copy,
    backlog: 0,
    unsent: 0,
    resumeReading() {},
    abort() {},
    close() {},
    unref() {},
    send: take,
    post: take,
    finish: (done) => done(null),
    whenFinished: (then) => then(),
    destroy() {},
    settle(error = null) {
      for (const done of waiting.splice(0)) done?.(error);
    },
    bytes: () => Buffer.concat(kept),
    /** The application bytes of its records. */
    payload() {
      let text = '';
      new RecordParser().feed(this.bytes(), { onData: (_, bytes) => (text += bytes), onControl() {} });
      return text;
    },
  };
}
