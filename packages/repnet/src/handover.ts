/**
 * Sockets and servers that go to another process, by `subprocess.send(message, handle)`, by
 * `process.send`, or as one of the `stdio` of a child. Both have to know before: a replicated
 * socket has no handle that could be sent (bridge.ts), and a server whose handle leaves is not the
 * only one to accept on its port. The methods of each child, which a diagnostics channel announces,
 * are wrapped.
 */
import { ChildProcess } from 'node:child_process';
import { subscribe } from 'node:diagnostics_channel';

/** Called with everything that is about to leave; the result leaves instead. May throw. */
type Leaving = (object: unknown) => unknown;

const askBefore: Leaving[] = [];

function leave(object: unknown): unknown {
  return askBefore.reduce((leaving, ask) => ask(leaving), object);
}

type Send = (this: unknown, message: unknown, handle?: unknown, ...rest: unknown[]) => boolean;
type Spawn = (this: ChildProcess, options: { stdio?: unknown }) => number;

const wrapped = new WeakSet<Send>();

function wrapSend(sender: { send?: unknown }): void {
  const inherited = sender.send as Send | undefined;
  if (typeof inherited !== 'function' || wrapped.has(inherited)) return;
  const send: Send = function send(message, handle, ...rest) {
    if (handle === undefined || handle === null || typeof handle === 'function')
      return inherited.call(this, message, handle, ...rest);
    return inherited.call(this, message, leave(handle), ...rest);
  };
  wrapped.add(send);
  sender.send = send;
}

/** Wraps a child that is not spawned yet, and gets its `send` then. */
function wrapSpawn(child: ChildProcess): void {
  const own = child as unknown as { spawn?: Spawn };
  const spawn = own.spawn as Spawn;
  own.spawn = function (options) {
    delete own.spawn;
    const { stdio } = options;
    const result = spawn.call(this, Array.isArray(stdio) ? { ...options, stdio: stdio.map(leave) } : options);
    wrapSend(child);
    return result;
  };
}

function watch(): void {
  wrapSend(process);
  subscribe('child_process', (message) => wrapSpawn((message as { process: ChildProcess }).process));
  // Children that began before this module was loaded.
  const active = (process as { _getActiveHandles?(): unknown[] })._getActiveHandles?.() ?? [];
  for (const each of active) if (each instanceof ChildProcess) wrapSend(each);
}

/** Registers `ask`, which is called with everything that is about to go to another process. */
export function onLeaving(ask: Leaving): void {
  if (askBefore.length === 0) watch();
  askBefore.push(ask);
}
