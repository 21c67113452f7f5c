/** Flows that outlive their sockets: a peer has to take the last bytes yet, or has not been told of the end. */

/** Milliseconds for which a closed flow waits until its peer has taken the last bytes. */
const LINGER_TIMEOUT = 60_000;
/** The most flows that wait so long. */
const LINGER_MOST = 4_096;
let lingering = 0;

export type Linger = NodeJS.Timeout;

/**
 * Calls `over` after a minute, or after `impatient` milliseconds if nothing is being carried or too many flows wait
 * already. `endLinger` cancels.
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

/** An array, which grows to the most flows there were: a Set would make a new table every few flows. */
const unannounced: Unannounced[] = [];

/** Whether the process exits. */
export let exiting = false;

// A process that exits ends plain connections in order. On a connection of records the end is a record, which can still be sent.
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
