/** Connections that outlive their socket until the peer has taken the last bytes, as the kernel's do: bounded in number and time. */

/** Milliseconds that a closed flow waits for its peer to take the last bytes, and how many flows may. */
const LINGER_TIMEOUT = 60_000;
const LINGER_MOST = 4_096;
let lingering = 0;

export type Linger = NodeJS.Timeout;

/** `over` is called when the time is up; `impatient`: milliseconds that one waits beyond the most, or that has nothing to give. */
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
