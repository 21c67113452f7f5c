/** `listen(0)` of a server that replicates. */
import net from 'node:net';
import { type CreateHandle, type Internals, kOptions, type TcpHandle } from './server-internals.js';

/** Returns a handle that is bound, or an error number: net's own function, which programs replace. */
export const createHandle: CreateHandle = (...args) =>
  (net as unknown as { _createServerHandle: CreateHandle })._createServerHandle(...args);

/** A free port whose successor (or the `replicaPort` asked for) is free too. */
export function bindPair(
  server: Internals,
  address: string | null,
  addressType: number | null,
  flags: number | undefined,
  backlog: number,
): { first: TcpHandle; second: TcpHandle } | undefined {
  const bind = (port: number): TcpHandle | undefined => {
    const wildcards: [string, number][] = [
      ['::', 6],
      ['0.0.0.0', 4],
    ];
    const where: [string, number][] =
      address === null || address === undefined ? wildcards : [[address, addressType ?? 4]];
    for (const [host, family] of where) {
      const handle = createHandle(host, port, family, undefined, flags);
      if (typeof handle === 'number') continue;
      // Only listening tells for sure: a port in use by connections can be bound.
      if (handle.getsockname({}) === 0 && handle.listen(backlog || 511) === 0) return handle;
      handle.close();
    }
    return undefined;
  };
  const spare: TcpHandle[] = [];
  try {
    for (let attempt = 0; attempt < 256; attempt++) {
      // The successors of ports that the kernel chooses are those from which it lets clients connect. Where many
      // connections are open or have just closed, all of those may be taken: then below the range it chooses from.
      const first = bind(attempt < 16 ? 0 : 10_000 + Math.floor(Math.random() * 22_000));
      // Another process may have begun to listen on it at this moment.
      if (first === undefined) continue;
      const bound = {} as { port: number };
      first.getsockname(bound);
      const wanted = server[kOptions].replicaPort ?? bound.port + 1;
      const second = wanted <= 65535 ? bind(wanted) : undefined;
      if (second !== undefined) return { first, second };
      spare.push(first);
    }
    return undefined;
  } finally {
    for (const handle of spare) handle.close();
  }
}
