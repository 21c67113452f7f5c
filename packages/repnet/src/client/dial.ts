/**
 * The client side: chooses how a replicated socket connects, by its mode and what is known of the
 * server.
 */
import * as budget from '../memory/budget.js';
import { defaults } from '../options.js';
import { setDial } from '../socket.js';
import { type DialTarget, type Inner, kTrial } from '../socket-internals.js';
import { counters } from '../stats.js';
import { draw } from '../trial.js';
import { FlowDial } from './dial-flow.js';
import { dialPlain, type Plain } from './dial-plain.js';
import { SynDial } from './dial-syn.js';
import { chooseDelay } from './hedge.js';
import {
  isDue,
  mayLearnLife,
  mayRace,
  type Peer,
  peerKey,
  recallPeer,
  TRANSLATED,
  toldPeer,
} from './peers.js';
import { probe } from './probe.js';
import { asAddress } from './resolution.js';

setDial((socket, target) => {
  const { host } = target.net;
  chooseDelay(target);
  const known = recallKnown(host, target);
  budget.begun();
  if (target.mode === 'syn') return dialSyn(socket, target, known);
  if (known?.kind === 'plain' || known?.kind === 'silent' || known?.kind === 'other')
    return dialPlain(socket, target);
  // From that port of the application's own, a second connection on this host would be one to
  // itself.
  if (target.net.localPort === target.replication.replicaPort) return dialPlain(socket, target);
  if (known !== undefined && isControl(socket)) return dialPlain(socket, target);
  if (!mayDouble(target)) return dialPlain(socket, target);
  new FlowDial(socket, target, known?.kind === 'repnet' ? known : undefined).start();
});

/** Draws whether the flow, which could have copies, goes without for the trial. */
function isControl(socket: Inner): boolean {
  if (defaults.control === 0) return false;
  const participant = draw(defaults.control);
  socket[kTrial] = participant;
  return !participant.hasCopies;
}

/**
 * RepSYN races from the first contact on: the second address of a name begins after the delay of a
 * second connection.
 */
function earlyRace({ replication }: DialTarget): Plain {
  const take = () => {
    if (!budget.takeConnection()) return false;
    counters.copiesIssued++;
    return true;
  };
  return { early: { after: replication.copyDelay, take } };
}

function dialSyn(socket: Inner, target: DialTarget, known: Peer | undefined): void {
  const { host, localPort } = target.net;
  if (localPort !== undefined) return dialPlain(socket, target);
  // Two connections to the first port would be two flows to such a server, and the second port may
  // be another's. A server that is silent behind a filter may be such a one: it is asked again
  // later.
  if (known?.kind === 'other' || known?.kind === 'silent' || ((known?.flags ?? 0) & TRANSLATED) !== 0)
    return dialPlain(socket, target);
  // Unknown, or not for certain: one connection now, and find out for the next.
  const certain = known?.kind === 'repnet' || (known?.kind === 'plain' && mayRace(known));
  if (!certain) dialPlain(socket, target, earlyRace(target));
  else if (isControl(socket)) dialPlain(socket, target);
  else if (!mayDouble(target)) dialPlain(socket, target);
  else if (known.kind === 'plain') new SynDial(socket, target, undefined).start();
  else new SynDial(socket, target, known).start();
  if (known?.kind === 'repnet' ? mayLearnLife(known) : known?.kind !== 'plain' || isDue(known))
    probeBeside(socket, target, host);
}

/**
 * Returns whether the budget has room for a second connection; hedged, that is asked when it
 * begins.
 */
function mayDouble(target: DialTarget): boolean {
  return target.replication.copyDelay > 0 || budget.takeConnection();
}

/** Asks the server beside the flow, by a connection that the budget counts, too. */
function probeBeside(socket: Inner, target: DialTarget, host: string): void {
  if (!budget.takeConnection()) return;
  socket.once('connect', () => {
    // An earlier listener may have destroyed the socket, which then goes nowhere: the next flow
    // asks.
    const address = asAddress(socket.remoteAddress);
    const { localAddress, localPort } = socket;
    if (address !== undefined) probe(host, address, target, { localAddress, localPort });
  });
}

function recallKnown(host: string, target: DialTarget): Peer | undefined {
  const { peer, replicaPort, threshold } = target.replication;
  if (peer === 'plain') return toldPeer('plain');
  const known = recallPeer(peerKey(host, target.net.port, replicaPort));
  return known?.kind !== 'repnet' && peer === 'repnet' ? toldPeer('repnet', threshold) : known;
}
