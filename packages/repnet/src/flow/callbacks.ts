/** What a write's callback waits for, where the bytes go more than one way. */

export type Callback = (error?: Error | null) => void;

export interface FirstOf {
  callback: Callback;
  /** So many writes there are; another number later, if there is one more. */
  begun: (writes: number) => void;
  /** It has not called back. */
  readonly pending: boolean;
}

/**
 * Calls back at the first success, or when all that were begun have failed, but not before `begun`: a write may succeed at
 * once and the application's next one must not reach a copy before this one has.
 */
export function firstOf(done: Callback): FirstOf {
  let writes = Number.POSITIVE_INFINITY;
  let outcome: { error: Error | null | undefined } | undefined;
  let failures = 0;
  let last: Error | undefined;
  return {
    get pending() {
      return outcome === undefined;
    },
    callback: (error) => {
      if (outcome !== undefined) return;
      if (error && ++failures < writes) {
        last = error;
        return;
      }
      outcome = { error };
      if (writes !== Number.POSITIVE_INFINITY) done(error);
    },
    begun: (count) => {
      writes = count;
      if (outcome === undefined && failures >= count) outcome = { error: last };
      if (outcome !== undefined) done(outcome.error);
    },
  };
}

/** For the two parts of one write: calls back when both have succeeded, or once when one fails. */
export function onceBoth(done: Callback): Callback {
  let parts = 2;
  return (error) => {
    if (parts === 0) return;
    parts = error ? 0 : parts - 1;
    if (parts === 0) done(error);
  };
}
