/**
 * Misspelt options. Ours come among those of net, tls and http, of which there are more with each version of Node: so a name is
 * wrong if it is nearly one of ours.
 */
import { RepnetError } from './errors.js';

/** Edits (a letter more, less or other, two exchanged) by which a misspelt name may differ from one of at least so many letters. */
const EDITS: readonly [letters: number, edits: number][] = [
  [8, 2],
  [4, 1],
];

/** Names that were looked at and are no misspelt ones. `address`: as `server.address()` has it. */
const innocent = new Set(['address']);
const MOST_INNOCENT = 1_024;

function edits(from: string, to: string): number {
  // Distances of the beginnings of `from` to those of `to`: of the last two and of this row.
  let before: number[] = [];
  let last = Array.from({ length: to.length + 1 }, (_, j) => j);
  for (let i = 1; i <= from.length; i++) {
    const row = [i];
    for (let j = 1; j <= to.length; j++) {
      const same = from[i - 1] === to[j - 1];
      let least = Math.min(at(last, j - 1) + (same ? 0 : 1), at(last, j) + 1, at(row, j - 1) + 1);
      if (i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1])
        least = Math.min(least, at(before, j - 2) + 1);
      row.push(least);
    }
    before = last;
    last = row;
  }
  return at(last, to.length);
}

function at(row: readonly number[], index: number): number {
  return row[index] as number;
}

/** The one of `names` that `name` was meant for; undefined: it is one of them, or none. */
export function meantFor(name: string, names: readonly string[]): string | undefined {
  if (names.includes(name)) return undefined;
  const written = name.toLowerCase();
  let best: string | undefined;
  let least = Number.POSITIVE_INFINITY;
  for (const each of names) {
    const right = each.toLowerCase();
    if (right[0] !== written[0]) continue;
    const distance = edits(written, right);
    const allowed = EDITS.find(([letters]) => right.length >= letters)?.[1] ?? 0;
    // Nothing of net's begins like this.
    const ours = right.startsWith('replica') && written.startsWith('replic');
    if ((distance <= allowed || ours) && distance < least) {
      least = distance;
      best = each;
    }
  }
  return best;
}

export function misspelt(name: string, meant: string): RepnetError {
  return new RepnetError('ERR_REPNET_OPTION', `${name} is not an option; did you mean ${meant}?`);
}

/** @throws RepnetError ERR_REPNET_OPTION if one of the names of `options` is nearly one of `names`. */
export function checkNames(options: object, names: readonly string[]): void {
  for (const name of Object.keys(options)) {
    if (innocent.has(name)) continue;
    const meant = meantFor(name, names);
    if (meant !== undefined) throw misspelt(name, meant);
    if (innocent.size < MOST_INNOCENT) innocent.add(name);
  }
}
