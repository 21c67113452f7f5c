/**
 * Waits: for word of the peer, by a process that may stand still; for the peer of a closed flow,
 * until it has taken the last bytes; and for the exit of the process.
 */

/** Milliseconds for which a closed flow waits until its peer has taken the last bytes. */
const LINGER_TIMEOUT = 60_000;
/** The most flows that wait so long. */
const LINGER_MOST = 4_096;
let lingering = 0;

export type Linger = NodeJS.Timeout;

/**
 * Calls `over` after a minute, or after `impatient` milliseconds if nothing is being carried or too
 * many flows wait already. `endLinger` cancels.
 */
export function startLinger(over: () => void, impatient = 1_000, carrying = true): Linger {
  const patient = carrying && lingering < LINGER_MOST;
  lingering++;
  const timer = setTimeout(over, patient ? LINGER_TIMEOUT : impatient);
  timer.unref();
  return timer;
}

export function endLinger(linger: Linger): void {
  clearTimeout(linger);
  lingering--;
}

/** A flow whose peer does not know of its end yet. */
export interface Unannounced {
  /** Index in the list of unannounced flows; -1 if the flow is not on it. */
  place: number;
  /** The process exits. */
  exit(): void;
}

/**
 * An array, which grows to the most flows there were: a Set would make a new table every few flows.
 */
const unannounced: Unannounced[] = [];

/** Whether the process exits. */
export let exiting = false;

// A process that exits ends plain connections in order. On a connection of records the end is a
// record, which can still be sent.
process.on('exit', () => {
  exiting = true;
  for (const flow of [...unannounced]) flow.exit();
});

/** Puts a new flow on the list of flows that hear of the process's exit. */
export function enlist(flow: Unannounced): void {
  flow.place = unannounced.push(flow) - 1;
}

/** Takes a flow off the list: its peer is informed of the end. */
export function strike(flow: Unannounced): void {
  const at = flow.place;
  if (at < 0) return;
  flow.place = -1;
  const last = unannounced.pop() as Unannounced;
  if (last === flow) return;
  unannounced[at] = last;
  last.place = at;
}

/**
 * A wait for something to arrive that allows for a process that stands still (stopped, swapped out,
 * collecting garbage): timers run before what has arrived meanwhile is read, so that a plain one
 * would take it for missing.
 */
const SLICES = 4;

/**
 * Times `pairTimeout` for which a peer that is known to have both connections of a flow may stand
 * still.
 */
const WORD_WAITS = 20;
const LONGEST = 2 ** 31 - 1;

/**
 * Milliseconds for which word of such a peer is waited for where its absence would be taken for the
 * orderly end of a stream. Silence does not tell a process that stands still from a path that is
 * dead, and an end cannot be taken back.
 */
export function wordTimeout(pairTimeout: number): number {
  return Math.min(WORD_WAITS * pairTimeout, LONGEST);
}

/**
 * Like `setTimeout`, but allows for a process that stands still, and keeps the process alive only
 * if it is referenced. `done` runs when everything that had arrived by then is read, and after a
 * further quarter of the time if the process stood still at the end. It may run once after
 * `clearTimeout`, and has to check whether it is wanted.
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
