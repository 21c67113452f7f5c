/** Discovery: finds out beside the first flow to a server whether it understands replication. */
import net from 'node:net';
import { patientTimeout, wordTimeout } from '../flow/waits.js';
import { untold } from '../net-internals.js';
import type { DialTarget } from '../socket-internals.js';
import { counters } from '../stats.js';
import { type Answer, decodeAnswer, encodeHello, HelloFlag, Kind } from '../wire.js';
import { isShortage, legOptions, newToken } from './dialing.js';
import { noteLife, noteRefusal, type Peer, peerKey, rememberPeer } from './peers.js';
import type { Address } from './resolution.js';

/** The source of the flow's connection to the first port. */
export interface FirstConnection {
  localAddress?: string | undefined;
  localPort?: number | undefined;
}

/** Asks, beside a flow that the server has just accepted, whether it understands replication. */
const probing = new Set<string>();
export function probe(host: string, address: Address, target: DialTarget, first: FirstConnection): void {
  const { replicaPort, pairTimeout } = target.replication;
  const key = peerKey(host, target.net.port, replicaPort);
  if (probing.has(key)) return;
  probing.add(key);
  const asked = Date.now();
  const options = legOptions(target, address, replicaPort);
  const connection = new net.Socket(options);
  untold(connection, () => connection.connect(options));
  connection.unref();
  let seen = Buffer.alloc(0);
  let isOver = false;
  /**
   * The server was taken for a silent one, and may only be busy: other questions do not wait for
   * its answer.
   */
  let isLate = false;
  const finish = (kind: Peer['kind'], { flags = 0, threshold = 0, life }: Partial<Answer> = {}) => {
    if (isOver) return;
    isOver = true;
    clearTimeout(timer);
    connection.destroy();
    if (!isLate) probing.delete(key);
    // Only an answer is news of a server that has been silent.
    const answers = kind === 'repnet' || kind === 'other';
    if (isLate && !answers) return;
    if (!answers) counters.foreignPeers++;
    if (kind === 'plain') noteRefusal(key, asked);
    else rememberPeer(key, kind, flags, threshold);
    if (kind === 'repnet' && life !== undefined) noteLife(key, address, life);
  };
  const silent = () => {
    if (isOver) return;
    isLate = true;
    probing.delete(key);
    counters.foreignPeers++;
    rememberPeer(key, 'silent');
    timer = patientTimeout(() => finish('silent'), wordTimeout(pairTimeout));
  };
  let timer = patientTimeout(silent, pairTimeout);
  connection.on('connect', () => {
    connection.write(
      encodeHello({
        kind: Kind.probe,
        flags: HelloFlag.beside,
        threshold: target.replication.threshold,
        token: newToken(),
        sourceAddress: first.localAddress ?? '',
        sourcePort: first.localPort ?? 0,
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
    else finish(answer.port === target.net.port ? 'repnet' : 'other', answer);
  });
  // A server of this library with too many connections accepts and closes, too.
  connection.on('end', () => finish('silent'));
  connection.on('error', (error: NodeJS.ErrnoException) => {
    if (!isShortage(error)) return finish(error.code === 'ECONNREFUSED' ? 'plain' : 'silent');
    isOver = true;
    clearTimeout(timer);
    if (!isLate) probing.delete(key);
  });
}
