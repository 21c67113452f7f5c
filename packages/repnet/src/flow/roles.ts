/** Interfaces between the parts of a flow, its socket and its client. */
import type { Archive } from '../memory/archive.js';
import type { Leg } from './leg.js';
import type { Copy } from './machine.js';
import type { Sender } from './sender.js';

/** The application's socket, as a flow uses it. */
export interface Outer {
  readonly connecting: boolean;
  readonly destroyed: boolean;
  /** The application does not want the flow to keep the process alive. */
  readonly unreferenced: boolean;
  /** Hands bytes (null: the end) to the application; false: it is behind. */
  deliver(chunk: Buffer | null): boolean;
  destroy(error?: Error): unknown;
  /** Any activity restarts the idle timer of `setTimeout`. */
  touch(): void;
}

export interface FlowOptions {
  threshold: number;
  lull: number;
  copyDelay: number;
  pairTimeout: number;
  loser: 'rst' | 'fin' | undefined;
}

/** Client side: who dials the connections of a flow. */
export interface FlowClient {
  /** A copy was lost; true: that is dealt with. */
  copyLost(leg: Leg, error: NodeJS.ErrnoException | undefined): boolean;
  /** A copy that may still be connecting is not wanted any more. */
  copyAbandoned(copy: Copy): void;
  /**
   * The flow is closed, and the first connection still to come: `archive` is all that was written.
   */
  keepForFirst(archive: Archive): void;
  /**
   * The flow is closed, and the server has not answered on the second connection, `leg`. `total`
   * bytes were written, which `archive` has if it is there.
   */
  keepSecond(leg: Leg, archive: Archive | undefined, total: number): void;
  /** `bytes` that should be an answer have come. False: no more is wanted of the copy. */
  answered(leg: Leg, bytes: Buffer): boolean;
  /** The first bytes of the peer are there. */
  firstBytes(): void;
}

/** The flow, as its sending side uses it. */
export interface SenderHost {
  readonly outer: Outer;
  readonly options: FlowOptions;
  readonly legs: readonly [Leg | undefined, Leg | undefined];
  readonly lastError: NodeJS.ErrnoException | undefined;
  /** The application has been told that the flow broke off: so is the peer, by a reset. */
  broken: boolean;
}

/** The flow, as its receiving side uses it. */
export interface ReceiverHost {
  readonly outer: Outer;
  readonly options: FlowOptions;
  readonly legs: readonly [Leg | undefined, Leg | undefined];
  readonly receives: 'request' | 'reply';
  readonly lastError: NodeJS.ErrnoException | undefined;
  readonly sender: Sender;
  readonly closed: boolean;
  /** The doubling threshold of the peer: at half of it the verdict on its message is due. */
  readonly peerThreshold: number;
  /** The peer has answered a hello before: a replica that is pending is worth waiting for. */
  readonly peerKnown: boolean;
  readonly client: FlowClient | undefined;
  fail(error: Error | undefined): void;
  abandon(copy: Copy): void;
  forsakeFirst(): void;
  peerDone(leg: Leg | undefined): void;
}
