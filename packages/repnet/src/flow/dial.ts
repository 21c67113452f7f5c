/** The client side: which way a replicated socket connects, by its mode and what is known of the server. */
import { setDial } from '../socket.js';
import type { DialTarget, Inner } from '../socket-internals.js';
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
  budget.begun();
  if (target.mode === 'syn') {
    if (target.net.localPort) return dialPlain(socket, target);
    // Two connections to the first port would be two flows to such a server, and its second might be another's. One that is
    // silent behind a filter may be such a server, too: it is asked again when that is forgotten.
    if (
      known?.kind === 'other' ||
      known?.kind === 'silent' ||
      (known !== undefined && (known.flags & TRANSLATED) !== 0)
    )
      return dialPlain(socket, target);
    // Unknown: one connection now, and find out for the next.
    if (known?.kind !== 'plain' && known?.kind !== 'repnet') return dialAndProbe(socket, target, host);
    if (!mayDouble(target)) return dialPlain(socket, target);
    const [to, peer] = known.kind === 'plain' ? [port, undefined] : [target.replication.replicaPort, known];
    return new SynDial(socket, target, to, peer).start();
  }
  if (plain) return dialPlain(socket, target);
  // The first connection begins with a preamble, too, which only a server that expects it may get.
  if (target.replication.pairing === 'token') {
    if (known?.kind !== 'repnet') return dialAndProbe(socket, target, host);
    if (known.until !== 0 && (known.flags & AnswerFlag.token) === 0) return dialPlain(socket, target);
  }
  if (!mayDouble(target)) return dialPlain(socket, target);
  new FlowDial(socket, target, known?.kind === 'repnet' ? known : undefined).start();
});

/** The budget of connections has room for a second one. Hedged, it is asked when that is made. */
function mayDouble(target: DialTarget): boolean {
  return target.replication.copyDelay > 0 || budget.takeConnection();
}

/** The question is a connection beside the flow's, too. */
function dialAndProbe(socket: Inner, target: DialTarget, host: string): void {
  dialPlain(socket, target);
  if (budget.takeConnection())
    socket.once('connect', () => probe(host, socket.remoteAddress as string, target));
}

function recallKnown(host: string, target: DialTarget): Peer | undefined {
  const { peer, replicaPort, threshold } = target.replication;
  if (peer === 'plain') return { kind: 'plain', flags: 0, threshold: 0, until: 0, strikes: 0 };
  const known = recallPeer(peerKey(host, target.net.port, replicaPort));
  if (known?.kind !== 'repnet' && peer === 'repnet')
    return { kind: 'repnet', flags: 0, threshold, until: 0, strikes: 0 };
  return known;
}
