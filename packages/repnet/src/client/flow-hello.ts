/** The first bytes on the second connection of a flow. */
import type { Leg } from '../flow/leg.js';
import type { DialTarget } from '../socket-internals.js';
import { encodeHello, Kind } from '../wire.js';
import { newToken } from './dialing.js';

export function flowHello(
  { net, replication }: DialTarget,
  leg: Pick<Leg, 'localAddress' | 'localPort' | 'remoteAddress'>,
): Buffer {
  return encodeHello({
    kind: Kind.replica,
    flags: 0,
    threshold: replication.threshold,
    token: newToken(),
    sourceAddress: leg.localAddress ?? '',
    sourcePort: leg.localPort ?? 0,
    targetAddress: leg.remoteAddress ?? '',
    targetPort: net.port,
    patience: replication.copyDelay + replication.pairTimeout,
  });
}
