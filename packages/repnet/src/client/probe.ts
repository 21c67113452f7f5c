/** Discovery: whether a server understands replication, found out beside the first flow to it. */
import net from 'node:net';
import type { DialTarget } from '../socket-internals.js';
import { counters } from '../stats.js';
import { decodeAnswer, encodeHello, Kind } from '../wire.js';
import type { Address } from './address.js';
import { isShortage, legOptions, newToken } from './dialing.js';
import { noteRefusal, type Peer, peerKey, rememberPeer } from './peers.js';

/** Asks, beside a flow that the server has just accepted, whether it understands replication. */
const probing = new Set<string>();
export function probe(host: string, address: Address, target: DialTarget): void {
  const { replicaPort, pairTimeout } = target.replication;
  const key = peerKey(host, target.net.port, replicaPort);
  if (probing.has(key)) return;
  probing.add(key);
  const asked = Date.now();
  const connection = net.connect(legOptions(target, address, replicaPort));
  connection.unref();
  let seen = Buffer.alloc(0);
  const finish = (kind: Peer['kind'], flags = 0, threshold = 0) => {
    clearTimeout(timer);
    if (!probing.delete(key)) return;
    if (kind !== 'repnet' && kind !== 'other') counters.foreignPeers++;
    if (kind === 'plain') noteRefusal(key, asked);
    else rememberPeer(key, kind, flags, threshold);
    connection.destroy();
  };
  const timer = setTimeout(() => finish('silent'), pairTimeout);
  timer.unref();
  connection.on('connect', () => {
    connection.write(
      encodeHello({
        kind: Kind.probe,
        flags: 0,
        threshold: target.replication.threshold,
        token: newToken(),
        sourceAddress: connection.localAddress ?? '',
        sourcePort: connection.localPort ?? 0,
        targetAddress: connection.remoteAddress ?? '',
        targetPort: target.net.port,
        patience: 0,
      }),
    );
  });
  connection.on('data', (chunk) => {
    seen = Buffer.concat([seen, chunk]);
    if (seen.length < 24 && seen[0] === 0x9e) return;
    const answer = seen.length >= 24 ? decodeAnswer(seen) : undefined;
    if (answer === undefined) finish('plain');
    else finish(answer.port === target.net.port ? 'repnet' : 'other', answer.flags, answer.threshold);
  });
  // Accepted and closed: so does a server of this library that has too many connections.
  connection.on('end', () => finish('silent'));
  connection.on('error', (error: NodeJS.ErrnoException) => {
    if (!isShortage(error)) return finish(error.code === 'ECONNREFUSED' ? 'plain' : 'silent');
    clearTimeout(timer);
    probing.delete(key);
  });
}
