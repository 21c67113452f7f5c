/** What the connections of a flow say first. */
import type { Leg } from '../flow/leg.js';
import type { DialTarget } from '../socket-internals.js';
import { encodeHello, HelloFlag } from '../wire.js';

export interface Said {
  kind: number;
  /** By token both connections name the flow by the same one. */
  token: Buffer;
  /** Records follow at once. */
  early: boolean;
  /** The other connection neither has begun the flow nor will. */
  origin: boolean;
}

export function flowHello(
  { net, replication }: DialTarget,
  leg: Pick<Leg, 'localAddress' | 'localPort' | 'remoteAddress'>,
  { kind, token, early, origin }: Said,
): Buffer {
  return encodeHello({
    kind,
    flags:
      (replication.pairing === 'token' ? HelloFlag.token : 0) |
      (early ? HelloFlag.early : 0) |
      (origin ? HelloFlag.origin : 0),
    threshold: replication.threshold,
    token,
    sourceAddress: leg.localAddress ?? '',
    sourcePort: leg.localPort ?? 0,
    targetAddress: leg.remoteAddress ?? '',
    targetPort: net.port,
    patience: replication.copyDelay + replication.pairTimeout,
  });
}
