/**
 * Every sequence of events to a depth. Sequences that lead to the same state of machine and model are followed once: what
 * comes after is the same.
 */

/**
 * @template M
 * @param {object} walk
 * @param {() => M} walk.start a machine with its model, before anything has happened
 * @param {readonly { name: string, may(m: M): boolean, run(m: M): void }[]} walk.events `run` asserts what the event does
 * @param {(m: M) => void} walk.check what holds in every state
 * @param {(m: M) => string} walk.key all that the future depends on
 * @param {number} walk.depth
 * @returns {{ states: number, taken: Map<string, number> }} how many states there are, and how often each event was taken
 */
export function walk({ start, events, check, key, depth }) {
  const seen = new Set([key(start())]);
  const taken = new Map(events.map(({ name }) => [name, 0]));
  let level = [[]];
  for (let d = 0; d < depth; d++) {
    const next = [];
    for (const path of level)
      for (const event of events) {
        const m = start();
        for (const earlier of path) earlier.run(m);
        if (!event.may(m)) continue;
        taken.set(event.name, taken.get(event.name) + 1);
        try {
          event.run(m);
          check(m);
        } catch (error) {
          error.message += `\nafter ${[...path, event].map(({ name }) => name).join(', ')}`;
          throw error;
        }
        const reached = key(m);
        if (seen.has(reached)) continue;
        seen.add(reached);
        next.push([...path, event]);
      }
    level = next;
  }
  return { states: seen.size, taken };
}

/** The whole numbers from `from` up to, but not including, `to`. */
export function range(from, to) {
  return Array.from({ length: to - from }, (_, i) => from + i);
}
