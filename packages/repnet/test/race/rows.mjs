/**
 * Rows of the matrix: the addresses of a name, in the order of the resolver's answer. A letter says how
 * an address behaves, a digit its family: `6B4A` is an IPv6 blackhole, then an IPv4 address that answers.
 */
export const KINDS = {
  A: 'answers',
  S: 'slow: the first SYN is lost, the handshake takes a second',
  R: 'refuses',
  B: 'blackhole',
  X: 'resets 20 ms after the handshake',
};

const pairs = (first, second) =>
  [...'ASRBX'].flatMap((a) => [...'ASRBX'].map((b) => `${first}${a}${second}${b}`));

const LONGER = [
  '4R4B4A',
  '4B4B4A',
  '4B4R4A',
  '4S4B4A',
  '6B4B4A',
  '6B6B4A',
  '6R4R6A',
  '6B4R6A',
  '6B4X4A',
  '4B4B4B4A',
  '4R4R4R4A',
  '6B6B4B4A',
  '6B4B6B4A',
  '6R4B6S4R',
  '6S4B6R4R',
];

const EACH = [...'ASRBX'].map((kind) => `4${kind}`);

/** Every row of the page. */
export const ALL = [...EACH, ...pairs(4, 4), ...pairs(6, 4), ...LONGER];

/** Those of `npm test`, which take under a minute. */
export const FEW = [
  '4A',
  '4R',
  '4B4A',
  '4S4R',
  '4R4R',
  '6B4A',
  '6R4A',
  '6B4X',
  '6B4R',
  '6B4B4A',
  '4B4R4A',
  '6R4B6S4R',
];

export const addressesOf = (row) => {
  const parts = row.match(/\d\w/g);
  return parts.map(([family, kind], n) => addressOf(Number(family), kind, n));
};

/** The address of this kind and family for place `n` of a row. */
export function addressOf(family, kind, n) {
  const k = 'ASRBX'.indexOf(kind);
  return family === 4 ? `198.18.${k}.${n + 1}` : `2001:db8:0:${k}::${n + 1}`;
}
