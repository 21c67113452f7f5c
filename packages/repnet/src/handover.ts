/**
 * Handing a connection to another process. `subprocess.send(message, socket)` takes the socket's `_handle`, which no public
 * interface announces, and which for a replicated socket is not what it can send (flow/bridge.ts); so whoever asks for it is
 * looked at where there is, or may be, another process to send to.
 */
import { subscribe } from 'node:diagnostics_channel';

/** Children that began before this module was loaded are among what keeps the process alive. */
let hasChildren = process.getActiveResourcesInfo?.().includes('ProcessWrap') ?? true;
subscribe('child_process', () => {
  hasChildren = true;
});

const SENDER = 'node:internal/child_process';

function sites(_: Error, callSites: NodeJS.CallSite[]): NodeJS.CallSite[] {
  return callSites;
}

/** Who called `callee`, and who called them. */
function callersOf(callee: (...args: never[]) => unknown): NodeJS.CallSite[] {
  const { stackTraceLimit, prepareStackTrace } = Error;
  const trace: { stack?: NodeJS.CallSite[] } = {};
  try {
    Error.stackTraceLimit = 3;
    Error.prepareStackTrace = sites;
    Error.captureStackTrace(trace, callee);
    return trace.stack ?? [];
  } catch {
    return []; // a program has frozen Error
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
    Error.prepareStackTrace = prepareStackTrace;
  }
}

/**
 * Whether the caller of `callee` sends its object to another process: 'now' if under a call of `send`, which may throw; 'queued'
 * if that has returned, and nobody would catch.
 */
export function sends(callee: (...args: never[]) => unknown): 'now' | 'queued' | undefined {
  if (!hasChildren && process.channel == null) return undefined;
  const callers = callersOf(callee);
  if (callers[0]?.getFileName() !== SENDER) return undefined;
  return callers[2]?.getFileName() === SENDER && callers[2].getMethodName() === 'send' ? 'now' : 'queued';
}
