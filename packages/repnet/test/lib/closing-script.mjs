/** Scripts of events for the state machine that closes a flow. */
import { ClosingMachine } from '../../dist/flow/closing-machine.js';
import { PRIMARY, REPLICA } from '../../dist/flow/machine.js';

/** A client whose two connections are open; neither stream is over, and the last word was its own. */
export const BOTH_OPEN = {
  isClient: true,
  exiting: false,
  destroyed: true,
  legs: [true, true],
  copies: ['open', 'open'],
  done: [false, false],
  joined: true,
  readAll: false,
  wroteAll: false,
  sentAll: false,
  archived: false,
  turned: false,
  unheard: false,
  firstHasAll: false,
  inOrder: false,
};

export const NAMES = ['first', 'second'];
/** Actions that take a connection out of the flow, and which. */
const TAKES = {
  abort: ({ copy }) => copy,
  close: ({ copy }) => copy,
  setAside: () => PRIMARY,
  keepSecond: () => REPLICA,
};

/** An action in words: 'abort first', 'say reset', 'linger carrying'. */
function words(action) {
  const { do: name, copy, ...rest } = action;
  const details = Object.entries(rest)
    .filter(([, value]) => value !== false)
    .map(([key, value]) => (value === true ? key : value));
  return [name, ...(copy === undefined ? [] : [NAMES[copy]]), ...details].join(' ');
}

/** A flow in the state of BOTH_OPEN with these differences; performs actions as far as the facts show them. */
export class Script {
  machine = new ClosingMachine();

  constructor(facts = {}) {
    this.facts = { ...BOTH_OPEN, ...facts };
    this.facts.legs = [...this.facts.legs];
  }

  get state() {
    return this.machine.state;
  }

  /** The event occurs; returns the actions in words. */
  on(type, details = {}) {
    const actions = this.machine.on({ type, ...details }, this.facts);
    for (const action of actions) {
      const copy = TAKES[action.do]?.(action);
      if (copy !== undefined) this.facts.legs[copy] = false;
    }
    return actions.map(words);
  }

  /** A connection is lost. */
  lose(copy, failed = true) {
    this.facts.legs[copy] = false;
    return this.on('gone', { failed });
  }
}
