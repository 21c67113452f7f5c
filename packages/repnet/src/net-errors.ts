/** What net itself would say of a connection: it is asked with something else in the socket's place. */
import net from 'node:net';
import type { ConnectRequest, Handle } from './net-internals.js';
import type { Parts } from './net-parts.js';

type Asked = Pick<Parts, 'owner' | 'onread' | 'onconnect'>;

/** The error for a connection that failed with this status, after the events before it. */
export function askConnectFailure(
  { owner, onconnect }: Asked,
  status: number,
  request: ConnectRequest,
  emit: (event: string, args: unknown[]) => void,
): NodeJS.ErrnoException | undefined {
  let failure: NodeJS.ErrnoException | undefined;
  const asking = {
    destroyed: false,
    connecting: true,
    emit: (event: string, ...args: unknown[]) => emit(event, args),
    destroy: (error: NodeJS.ErrnoException) => {
      failure = error;
    },
  };
  const handle = { [owner]: asking } as unknown as Handle;
  onconnect.call(request, status, handle, request, false, false);
  return failure;
}

const measuring = {
  destroyed: false,
  connecting: true,
  readable: false,
  writable: false,
  _unrefTimer: () => {},
  emit: () => {},
};

/** Has net tell perf_hooks of a connection that was begun at `startTime` and is established now, if anybody observes. */
export function measureConnect(
  { owner, onconnect, measured }: Pick<Parts, 'owner' | 'onconnect' | 'measured'>,
  detail: { host: string; port: number },
  startTime: number,
): void {
  if (measured === undefined) return;
  const context = { type: 'net', name: 'connect', detail, startTime };
  const handle = { [owner]: { ...measuring, [measured]: context } } as unknown as Handle;
  onconnect.call({}, 0, handle, {}, false, false);
}

/** Why `onread` was called without bytes, of which the number is net's alone. Null: the peer has ended the stream. */
export function askReadFailure({ owner, onread }: Asked): NodeJS.ErrnoException | null {
  onread.call({ [owner]: inquirer } as unknown as Handle);
  const { error } = inquirer;
  inquirer.error = null;
  return error;
}

const inquirer = Object.create(net.Socket.prototype, {
  error: { value: null, writable: true },
  _parent: { value: null },
  destroyed: { value: false },
  _readableState: { value: { endEmitted: false } },
  on: { value: () => inquirer },
  // Asked on trial, it may find the number of an earlier read.
  push: { value: () => true },
  read: { value: () => null },
  destroy: {
    value: (error: NodeJS.ErrnoException) => {
      inquirer.error = error;
    },
  },
}) as { error: NodeJS.ErrnoException | null };
