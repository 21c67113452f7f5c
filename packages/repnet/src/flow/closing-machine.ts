/**
 * How a flow is closed, without I/O: events in, actions out. docs/design.md has the table of
 * transitions.
 *
 * | state     | meaning                                                                          |
 * |-----------|----------------------------------------------------------------------------------|
 * | open      | the application uses its socket                                                  |
 * | draining  | the socket is destroyed; what the system has received is read, since unread bytes make the close a reset |
 * | lingering | the peer is informed; connections outlive the socket for a bounded time          |
 * | closed    | no connection is left                                                            |
 */
import { COPIES, type Copy, type CopyState, PRIMARY, REPLICA } from './machine.js';

export type ClosingState = 'open' | 'draining' | 'lingering' | 'closed';

export type ClosingEvent =
  /**
   * The application's socket is destroyed. `reset`: an orderly end would hide a loss from the peer.
   */
  | { type: 'close'; reset: boolean }
  /**
   * The bytes that the system had received are read. `unread`: some of them never reached the
   * application.
   */
  | { type: 'drained'; unread: boolean }
  /** The process exits. */
  | { type: 'exit' }
  /** A connection has brought the peer's stream to its end. */
  | { type: 'ended'; copy: Copy }
  /** A connection is gone. `failed`: the peer may lack bytes that were sent on it. */
  | { type: 'gone'; failed: boolean }
  /** The system has taken all bytes of the first connection and its FIN. */
  | { type: 'written' }
  /** The system has taken no bytes of the second connection for `pairTimeout`. */
  | { type: 'stuck' }
  /** The time for lingering is up. */
  | { type: 'timeUp' };

/**
 * The state of the flow when an event occurs. Pairs hold the first connection's value, then the
 * second's.
 */
export interface ClosingFacts {
  readonly isClient: boolean;
  /** The process exits. */
  readonly exiting: boolean;
  /** The application has destroyed its socket, rather than the library the flow alone. */
  readonly destroyed: boolean;
  /** The connection is established. */
  readonly legs: readonly [boolean, boolean];
  /** The sending side's view of the copies. */
  readonly copies: readonly [CopyState, CopyState];
  /** The connection has brought the peer's stream to its end. */
  readonly done: readonly [boolean, boolean];
  /** The peer has joined the two connections. */
  readonly joined: boolean;
  /** The application has read the peer's stream to its end. */
  readonly readAll: boolean;
  /** The application has ended its own stream. */
  readonly wroteAll: boolean;
  /** The application knows that its whole stream is sent. */
  readonly sentAll: boolean;
  /** Every byte that the application wrote is archived. */
  readonly archived: boolean;
  /** The application has written nothing since it read last. */
  readonly turned: boolean;
  /** Nothing has come on the second connection. */
  readonly unheard: boolean;
  /** The system has taken every byte of our stream on the first connection. */
  readonly firstHasAll: boolean;
  /** Connections that are not needed end by FIN instead of RST (option `loser`). */
  readonly inOrder: boolean;
}

export type ClosingAction =
  /** Gives up the attempt to establish the connection. */
  | { do: 'abandonDial'; copy: Copy }
  /** Hands the archive to the first connection, which is still to come. */
  | { do: 'keepForFirst' }
  /** Keeps the archive for the second connection, whose answer is still to come. */
  | { do: 'keepForSecond' }
  | { do: 'stopSending' }
  /** Reads what the system has received; 'drained' follows. */
  | { do: 'drain' }
  /** Reports whether the flow is reset. */
  | { do: 'decide'; reset: boolean }
  /** Sends a control record on the second connection. */
  | { do: 'say'; record: 'end' | 'alone' | 'reset' }
  /**
   * Takes the first connection, which carries nothing, out of the flow until the flow is closed.
   */
  | { do: 'setAside' }
  /** Takes the connection out of the flow; `abort` sends RST, `close` FIN. */
  | { do: 'abort' | 'close'; copy: Copy }
  /** Reads the second connection to its end, after a FIN of ours if `fin`. */
  | { do: 'finish'; fin: boolean }
  /** Reads the connection until the peer's stream ends; 'ended' follows. */
  | { do: 'readToEnd'; copy: Copy }
  /** Waits until the system has all of the first connection; 'written' follows. */
  | { do: 'awaitWritten' }
  /** Takes the second connection out of the flow and waits for the server's answer on it. */
  | { do: 'keepSecond' }
  /** Drops the archive that was kept for the second connection. */
  | { do: 'dropForSecond' }
  /**
   * Starts the clock; 'timeUp' follows. `word`: the peer needs time to read a reset; `carrying`:
   * bytes are on their way.
   */
  | { do: 'linger'; word: boolean; carrying: boolean }
  /** Watches the second connection, if the system has not taken all of it; 'stuck' may follow. */
  | { do: 'watchSecond' }
  /** Stops the clocks, and ends the connection that was set aside. */
  | { do: 'settle'; inOrder: boolean };

/** No actions: never written to. */
const NONE: ClosingAction[] = [];

export class ClosingMachine {
  state: ClosingState = 'open';
  #reset = false;
  /** The first connection is still to come, and carries the archive if the second fails. */
  #keptForFirst = false;
  /** When the socket was destroyed the application knew that its whole stream was sent. */
  #sentAll = false;
  /** A connection failed while the flow was draining. */
  #failed = false;
  readonly #finishing: [boolean, boolean] = [false, false];
  /** Connections that are left once the actions are performed. */
  readonly #legs: [boolean, boolean] = [false, false];
  #actions = NONE;

  /** Returns the actions that follow from an event, in the order in which to perform them. */
  on(event: ClosingEvent, facts: ClosingFacts): readonly ClosingAction[] {
    if (this.state === 'closed') return NONE;
    const [first, second] = facts.legs;
    this.#legs[PRIMARY] = first;
    this.#legs[REPLICA] = second;
    this.#actions = NONE;
    if (this.state === 'open' && event.type === 'close') this.#close(event.reset, facts);
    else if (this.state === 'draining') this.#whileDraining(event, facts);
    else if (this.state === 'lingering') this.#whileLingering(event, facts);
    return this.#actions;
  }

  #do(action: ClosingAction): void {
    // A literal has room for one action, the first push to an empty array room for 17.
    if (this.#actions === NONE) this.#actions = [action];
    else this.#actions.push(action);
  }

  #close(reset: boolean, facts: ClosingFacts): void {
    const { archived, isClient } = facts;
    const misleads = firstMisleads(facts);
    this.#sentAll = facts.sentAll;
    for (const copy of COPIES)
      if (reset || copy === REPLICA || !misleads) this.#do({ do: 'abandonDial', copy });
    if (!reset && archived && isClient && misleads) {
      this.#keptForFirst = true;
      this.#do({ do: 'keepForFirst' });
    } else if (!reset && archived && awaitsAnswer(facts)) this.#do({ do: 'keepForSecond' });
    this.#do({ do: 'stopSending' });
    this.state = 'draining';
    if (reset || !mayLeaveUnread(facts)) this.#decide(reset, facts);
    else this.#do({ do: 'drain' });
  }

  #whileDraining(event: ClosingEvent, facts: ClosingFacts): void {
    if (event.type === 'drained') this.#decide(event.unread, facts);
    else if (event.type === 'exit') this.#decide(false, facts);
    else if (event.type === 'gone' && event.failed) this.#failed = true;
  }

  #whileLingering(event: ClosingEvent, facts: ClosingFacts): void {
    let failed = false;
    if (event.type === 'ended' && this.#legs[event.copy]) this.#letGo(event.copy, facts);
    else if (event.type === 'gone') failed = event.failed;
    else if (event.type === 'written' && this.#legs[PRIMARY]) this.#end('close', PRIMARY);
    else if (event.type === 'stuck' && this.#legs[REPLICA]) this.#end('close', REPLICA);
    else if (event.type === 'timeUp') this.#endAll(facts);
    else return;
    this.#settle(failed, facts);
  }

  /** Informs the peer, and lets go of the connections that are not needed for that. */
  #decide(reset: boolean, facts: ClosingFacts): void {
    const { copies, isClient } = facts;
    this.state = 'lingering';
    this.#reset = reset;
    this.#do({ do: 'decide', reset });
    const orderly = !reset && facts.readAll && facts.wroteAll;
    // The client may take a first connection that never came for established, and go on sending on
    // it.
    if (orderly && !isClient && this.#legs[REPLICA] && copies[PRIMARY] === 'pending')
      this.#do({ do: 'say', record: 'alone' });
    for (const copy of COPIES)
      if (this.#legs[copy]) {
        if (copies[copy] === 'pending') this.#endPending(copy, facts);
        else if (reset) this.#resetCopy(copy, facts);
        else if (copy === PRIMARY && isEmpty(facts)) this.#setAside();
        else if (orderly) this.#readToEnd(copy, facts);
        else {
          if (copy === REPLICA && !facts.wroteAll) this.#do({ do: 'say', record: 'end' });
          this.#letGo(copy, facts);
        }
      }
    this.#do({ do: 'dropForSecond' });
    if (this.#isOver) return this.#settle(this.#failed || copies[REPLICA] === 'gone', facts);
    const carrying = !reset && (this.#carries(PRIMARY, copies) || this.#carries(REPLICA, copies));
    this.#do({ do: 'linger', word: reset && this.#legs[REPLICA], carrying });
    // Bytes that the system does not take keep the process alive.
    if (facts.firstHasAll && this.#legs[REPLICA]) this.#do({ do: 'watchSecond' });
  }

  #carries(copy: Copy, copies: ClosingFacts['copies']): boolean {
    return this.#legs[copy] && copies[copy] === 'open';
  }

  /** Lets go of a connection that carries nothing yet. */
  #endPending(copy: Copy, facts: ClosingFacts): void {
    // A server that has not answered may be another service, to which the end of a process is no
    // reset.
    if (facts.exiting && !this.#reset) return this.#end('close', copy);
    if (this.#reset || !awaitsAnswer(facts)) return this.#end('abort', copy);
    this.#legs[copy] = false;
    this.#do({ do: 'keepSecond' });
  }

  #resetCopy(copy: Copy, facts: ClosingFacts): void {
    if (copy === PRIMARY) return this.#end('abort', PRIMARY);
    // With an RST right behind the record, the peer's next write would fail before the peer reads
    // the record.
    this.#do({ do: 'say', record: 'reset' });
    this.#letGo(REPLICA, facts);
  }

  #setAside(): void {
    this.#legs[PRIMARY] = false;
    this.#do({ do: 'setAside' });
  }

  /**
   * Both streams are over. A connection closed before the peer's end is read sends RST, and loses
   * bytes of ours.
   */
  #readToEnd(copy: Copy, facts: ClosingFacts): void {
    if (facts.done[copy]) this.#letGo(copy, facts);
    // The peer ends no connection on which it has not read our end.
    else if (copy === PRIMARY && facts.copies[PRIMARY] !== 'open') this.#end('abort', PRIMARY);
    else this.#do({ do: 'readToEnd', copy });
  }

  /**
   * Lets go of a connection that has done its part. On the second the peer may still report what it
   * receives; closing on an unread report would send RST, so the second is read until the peer ends
   * it.
   */
  #letGo(copy: Copy, facts: ClosingFacts): void {
    if (this.#finishing[copy]) return;
    this.#finishing[copy] = true;
    if (copy === REPLICA) this.#do({ do: 'finish', fin: !isEndedByPeer(facts) });
    // Closed before the system has our last bytes, the connection would end in order without them.
    else if (this.#sentAll) this.#do({ do: 'awaitWritten' });
    else this.#end('close', PRIMARY);
  }

  #endAll({ copies, inOrder }: ClosingFacts): void {
    for (const copy of COPIES) {
      // An RST on a connection that carries our end would take what the peer has not read yet.
      const carriesEnd = !this.#reset && (inOrder || copies[copy] === 'open');
      if (this.#legs[copy]) this.#end(carriesEnd ? 'close' : 'abort', copy);
    }
  }

  #end(how: 'abort' | 'close', copy: Copy): void {
    this.#legs[copy] = false;
    this.#do({ do: how, copy });
  }

  get #isOver(): boolean {
    return !this.#legs[PRIMARY] && !this.#legs[REPLICA];
  }

  /** Closes the flow if no connection is left. */
  #settle(failed: boolean, { joined }: ClosingFacts): void {
    if (!this.#isOver) return;
    this.state = 'closed';
    if (!failed || !this.#keptForFirst) this.#do({ do: 'abandonDial', copy: PRIMARY });
    this.#do({ do: 'settle', inOrder: joined });
  }
}

/**
 * The first connection may be established without our knowledge. Ended before the second has
 * brought our bytes, it would look like a stream without any; if the second is lost, only the first
 * can bring them.
 */
function firstMisleads({ archived, copies, joined, legs }: ClosingFacts): boolean {
  return copies[PRIMARY] === 'pending' && (legs[REPLICA] || (joined && archived));
}

/**
 * The second connection carries all that was written; an end of the first would look like a stream
 * without any of it.
 */
function isEmpty({ copies, joined }: ClosingFacts): boolean {
  return !joined && copies[PRIMARY] === 'gone' && copies[REPLICA] === 'open';
}

/**
 * Neither stream is over, and the application owes no answer to what it read last. `net` resets a
 * connection that it closes with bytes unread.
 */
function mayLeaveUnread({ destroyed, legs, readAll, turned, wroteAll }: ClosingFacts): boolean {
  return destroyed && (legs[PRIMARY] || legs[REPLICA]) && !readAll && !wroteAll && turned;
}

/** Client: the first connection carries the flow, and the server has not answered on the second. */
function awaitsAnswer({ copies, isClient, unheard }: ClosingFacts): boolean {
  return isClient && copies[PRIMARY] === 'open' && copies[REPLICA] === 'pending' && unheard;
}

/**
 * Client: records have ended both streams, so the server ends the second connection with its
 * socket.
 */
function isEndedByPeer({ copies, done, isClient, readAll, wroteAll }: ClosingFacts): boolean {
  return isClient && readAll && wroteAll && done[REPLICA] && copies[REPLICA] === 'open';
}
