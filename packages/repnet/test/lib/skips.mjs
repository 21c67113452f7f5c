/** Why a test is left out, by kind, as the string that node:test takes for `skip`; ../run.mjs counts each kind. */

/** An optional part is not there; `how` is the command that brings it, if one does. */
export const missing = (why, how) => `missing: ${why}${how === undefined ? '' : ` | ${how}`}`;

/** This version of Node has no such option or API. */
export const notThisNode = (why) => `node: ${why}`;

/** The machine has too little of something left; tried so many times. */
export const tooBusy = (why, tried) => `busy: ${why} | ${tried}`;

/** `{ kind, why, how, tried }` of such a string; of another, a part that is missing and that nothing is known to bring. */
export function kindOf(skip) {
  const [, kind = 'missing', why, detail] = /^(?:(missing|node|busy): )?([^|]*?)(?: \| (.*))?$/s.exec(skip);
  const how = kind === 'missing' ? (detail ?? null) : null;
  return { kind, why, how, tried: kind === 'busy' ? Number(detail) : 1 };
}
