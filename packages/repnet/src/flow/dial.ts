/** The client side: which way a replicated socket connects, by its mode and what is known of the server. */
import { setDial } from '../socket.js';
import type { DialTarget } from '../socket-internals.js';
import { counters } from '../stats.js';
import { AnswerFlag } from '../wire.js';
import * as budget from './budget.js';
import { FlowDial } from './dial-flow.js';
import { SynDial } from './dial-syn.js';
import { dialPlain } from './dialing.js';
import { type Peer, peerKey, recallPeer, TRANSLATED } from './peers.js';
import { probe } from './probe.js';

setDial((socket, target) => {
  const { host = 'localhost', port } = target.net;
  const known = recallKnown(host, target);
  const plain = known?.kind === 'plain' || known?.kind === 'silent' || known?.kind === 'other';
  if (!budget.takeConnection()) {
    counters.overBudget++;
    return dialPlain(socket, target);
  }
  if (target.mode === 'syn') {
    if (target.net.localPort) return dialPlain(socket, target);
    if (known?.kind === 'plain') return new SynDial(socket, target, port, undefined).start();
    // Two connections to the first port would be two flows to such a server, and its second might be another's.
    if (known?.kind === 'other' || (known !== undefined && (known.flags & TRANSLATED) !== 0))
      return dialPlain(socket, target);
    if (known?.kind === 'repnet')
      return new SynDial(socket, target, target.replication.replicaPort, known).start();
    // Unknown: one connection now, and find out for the next.
    dialPlain(socket, target);
    socket.once('connect', () => probe(host, socket.remoteAddress as string, target));
    return;
  }
  if (plain) return dialPlain(socket, target);
  if (target.replication.pairing === 'token') {
    // The first connection begins with a preamble, too, which only a server that expects it may get.
    if (known?.kind === 'repnet' && (known.until === 0 || (known.flags & AnswerFlag.token) !== 0))
      return new FlowDial(socket, target, known).start();
    dialPlain(socket, target);
    if (known?.kind !== 'repnet')
      socket.once('connect', () => probe(host, socket.remoteAddress as string, target));
    return;
  }
  new FlowDial(socket, target, known?.kind === 'repnet' ? known : undefined).start();
});

function recallKnown(host: string, target: DialTarget): Peer | undefined {
  const { peer, replicaPort, threshold } = target.replication;
  if (peer === 'plain') return { kind: 'plain', flags: 0, threshold: 0, until: 0, strikes: 0 };
  const known = recallPeer(peerKey(host, target.net.port, replicaPort));
  if (known?.kind !== 'repnet' && peer === 'repnet')
    return { kind: 'repnet', flags: 0, threshold, until: 0, strikes: 0 };
  return known;
}
