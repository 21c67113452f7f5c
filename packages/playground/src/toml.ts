/** Writes values as TOML. */

/** A value of an experiment. */
export type Value = string | number | boolean | null | Value[] | Table | Raw;
/** Keys and values. */
export type Table = { [key: string]: Value };

/** A value as the user typed it. */
export class Raw {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Returns what the user typed into a field: TOML, or a string without its quotes. */
export function typed(text: string): Raw {
  const plain = text.trim();
  const isToml = /^([["{']|(true|false|[-+]?\d[\d_]*(\.\d+)?([eE][-+]?\d+)?)$)/.test(plain);
  return new Raw(isToml ? plain : write(plain));
}

/** Returns whether a value is a table. */
export function isTable(value: Value | undefined): value is Table {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Raw);
}

/** Writes a key, quoted if necessary. */
export function key(name: string): string {
  return /^[A-Za-z0-9_-]+$/.test(name) ? name : write(name);
}

/** Writes a value in one line. Keys with null are left out, because TOML has no null. */
export function write(value: Value): string {
  if (value instanceof Raw) {
    return value.text;
  }
  if (typeof value === 'number') {
    return Number.isInteger(value) && Math.abs(value) >= 1e15 ? BigInt(value).toString() : String(value);
  }
  if (typeof value === 'string' || typeof value === 'boolean') {
    // JSON's escapes are TOML's, except for one character that JSON does not escape.
    return JSON.stringify(value).replaceAll('\u007f', '\\u007f');
  }
  if (Array.isArray(value)) {
    return `[${value.map(write).join(', ')}]`;
  }
  const pairs = Object.entries(value ?? {}).filter(([, of]) => of !== null);
  return pairs.length === 0
    ? '{}'
    : `{ ${pairs.map(([name, of]) => `${key(name)} = ${write(of)}`).join(', ')} }`;
}

/** Returns whether two values are equal, whatever the order of keys. */
export function same(a: Value | undefined, b: Value | undefined): boolean {
  if (isTable(a) && isTable(b)) {
    const names = new Set([...Object.keys(a), ...Object.keys(b)]);
    return [...names].every((name) => same(a[name] ?? null, b[name] ?? null));
  }
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((item, at) => same(item, b[at]));
  }
  return a === b;
}
