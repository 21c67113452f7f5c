/**
 * Options of replication, their defaults and their checks. The process-wide `defaults` may be
 * changed at run time, and are read when a flow starts.
 */
import { optionError, RepnetError } from './errors.js';

/**
 * 'flow': two copies of every byte (RepFlow). 'syn': two handshakes, one flow (RepSYN). false:
 * plain `net`.
 */
export type Mode = 'flow' | 'syn' | false;

/** The connection that is about to be made, as a predicate sees it. */
export interface FlowTarget {
  host: string;
  port: number;
  /** 0 where the caller does not bind. */
  localPort: number;
}

/** Milliseconds, or a quantile of what flows take. */
export type CopyDelay = number | `p${number}`;

export type Predicate = (target: FlowTarget) => Mode | boolean | undefined;

export interface ReplicationOptions {
  /** Mode of this connection (or server), or a predicate that chooses it. `true` means 'flow'. */
  replicate?: Mode | boolean | Predicate | undefined;
  /** Port of the replica connection; default: port + 1. */
  replicaPort?: number | undefined;
  /**
   * Bytes of one message and direction that are doubled before the flow is carried once (default
   * 100,000).
   */
  threshold?: number | undefined;
  /**
   * Milliseconds of silence after which a message counts as new and is doubled again (default 50).
   */
  lull?: number | undefined;
  /**
   * Milliseconds that the second copy waits for a slow first; 0: none (default). 'p95': as long as
   * 95 of 100 recent flows to the same destination took, or any other quantile from 'p1' to
   * 'p99.9'.
   */
  copyDelay?: CopyDelay | undefined;
  /**
   * The event that keeps a second connection from beginning: the first byte of the reply, or the
   * handshake of the first connection. Default: 'first-byte' with RepFlow. RepSYN always waits for
   * the handshake.
   */
  hedgeOn?: 'first-byte' | 'handshake' | undefined;
  /**
   * Milliseconds that `copyDelay: 'p95'` is until enough flows to the destination were seen
   * (default 10).
   */
  coldDelay?: number | undefined;
  /**
   * Milliseconds after which the client abandons a connection that is still pending (default
   * 1,000). The end of a stream is reported up to twenty times as late if only a bare FIN shows it,
   * and the peer may have both connections but is silent on the second.
   */
  pairTimeout?: number | undefined;
  /**
   * How the losing connection is closed: by RST, or in order ('fin'), which no server takes for an
   * error. Default: 'fin' where RepSYN races to an unmodified server, 'rst' elsewhere.
   */
  loser?: 'rst' | 'fin' | undefined;
  /** The kind of the server; 'auto' discovers it (default). */
  peer?: 'auto' | 'repnet' | 'plain' | undefined;
}

export interface ServerReplicationOptions extends ReplicationOptions {
  /**
   * Addresses ('host:port') at which clients reach this process and no other: a forwarded port, a
   * relay. Behind any other translated address a flow begins with its first connection only, since
   * the two could be dealt to different processes. The server's own address is one of them, but not
   * if the list is empty, as it should be behind a balancer that leaves the destination address
   * alone. ':port' says only that clients know the server by that port, so that they can tell it
   * from another service's.
   */
  addresses?: readonly string[] | undefined;
}

/** The options that every connection has. */
export const CONNECTION_OPTIONS = {
  replicate: true,
  replicaPort: true,
  threshold: true,
  lull: true,
  copyDelay: true,
  hedgeOn: true,
  coldDelay: true,
  pairTimeout: true,
  loser: true,
  peer: true,
} satisfies Record<keyof ReplicationOptions, true>;

const OPTION_NAMES = Object.keys({
  ...CONNECTION_OPTIONS,
  addresses: true,
} satisfies Record<keyof ServerReplicationOptions, true>);

/** @throws RepnetError ERR_REPNET_OPTION if an option is misspelt, or no longer exists. */
export function checkOptionNames(options: object): void {
  checkNames(options, OPTION_NAMES);
  const { pairing } = options as { pairing?: unknown };
  if (pairing === 'token')
    throw new RepnetError(
      'ERR_REPNET_OPTION',
      "pairing: 'token' is not available any more: the connections of a flow are paired by address. Remove the " +
        "option; where addresses are translated on the way, use replicate: 'syn'",
    );
}

export interface Defaults {
  /**
   * False: new flows are plain, and servers refuse further second connections (the kill switch).
   */
  enabled: boolean;
  replicate: Mode | Predicate;
  threshold: number;
  lull: number;
  copyDelay: CopyDelay;
  hedgeOn: 'first-byte' | 'handshake';
  coldDelay: number;
  pairTimeout: number;
  loser: 'rst' | 'fin' | undefined;
  peer: 'auto' | 'repnet' | 'plain';
  /**
   * Replication budget: extra bytes and extra connections as a fraction of the unreplicated ones
   * (0.05 = 5 %); Infinity: no limit (default). In any stretch of time there are at most that
   * fraction and a burst: 10 connections, 256 KiB (1 MiB times the fraction if that is more). Over
   * budget, flows begin plain, and messages go on one copy.
   */
  budget: { bytes: number; connections: number };
  /**
   * Share of the flows with a copy that go without, chosen at random, so that `stats().trial`
   * compares both groups (0 to 1; default 0: no comparison).
   */
  control: number;
  /** Server: milliseconds a flow stays on the waiting list for its second connection. */
  waitTimeout: number;
  /** Server: flows on the waiting list, and pairs remembered after it, at most. */
  waitEntries: number;
  /** Server: bytes held for connections that have not arrived, over all flows. */
  archiveBytes: number;
}

/**
 * Returns the mode in an environment variable. It never throws: a variable must not end a program
 * that does not know it.
 */
function modeFromEnvironment(value: string | undefined): Mode {
  switch (value) {
    case undefined:
    case '':
    case 'flow':
      return 'flow';
    case 'syn':
      return 'syn';
    case 'off':
    case 'net':
      return false;
    default:
      process.emitWarning(`REPNET_MODE is '${value}'; expected 'flow', 'syn' or 'off'. The mode is 'flow'`, {
        type: 'RepnetWarning',
        code: 'REPNET_MODE',
      });
      return 'flow';
  }
}

// ------------------------------------------------------------------ misspelt names

// Ours come among those of net, tls and http, which grow with each Node: a name is wrong if it is
// nearly one of ours.

/**
 * Edits (a letter more, less or other, two exchanged) between a misspelt name and one of that many
 * letters or more.
 */
const EDITS: readonly [letters: number, edits: number][] = [
  [8, 2],
  [4, 1],
];

/** Names that were checked and are not misspelt. `address` is a property of `server.address()`. */
const innocent = new Set(['address']);
const MOST_INNOCENT = 1_024;

function edits(from: string, to: string): number {
  // Distances between the beginnings of `from` and those of `to`: the last two rows and this one.
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

/**
 * Returns the one of `names` that `name` was meant for; undefined if it is one of them, or none.
 */
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

/**
 * @throws RepnetError ERR_REPNET_OPTION if one of the names of `options` is nearly one of `names`.
 */
export function checkNames(options: object, names: readonly string[]): void {
  for (const name of Object.keys(options)) {
    if (innocent.has(name)) continue;
    const meant = meantFor(name, names);
    if (meant !== undefined) throw misspelt(name, meant);
    if (innocent.size < MOST_INNOCENT) innocent.add(name);
  }
}

// ------------------------------------------------------------------ values

/** The longest time of a timer. */
const MOST_MILLISECONDS = 2 ** 31 - 1;
/** The largest number in a hello. */
const MOST_BYTES = 2 ** 32 - 1;

function milliseconds(name: string, value: unknown, least = 0): number {
  if (typeof value === 'number' && value >= least && value <= MOST_MILLISECONDS) return value;
  throw optionError(name, value, `milliseconds from ${least} to ${MOST_MILLISECONDS}`);
}

/** Returns 0.95 for 'p95'. */
function quantileOf(value: unknown, name: string): number {
  const [, percent] = typeof value === 'string' ? (/^p(\d{1,2}(?:\.\d)?)$/.exec(value) ?? []) : [];
  if (Number(percent) >= 1) return Number(percent) / 100;
  throw optionError(
    name,
    value,
    `milliseconds from 0 to ${MOST_MILLISECONDS}, or a quantile from 'p1' to 'p99.9'`,
  );
}

function whole(name: string, value: unknown, least: number, most: number): number {
  if (Number.isInteger(value) && (value as number) >= least && (value as number) <= most)
    return value as number;
  throw optionError(name, value, `a whole number from ${least} to ${most}`);
}

function fraction(name: string, value: unknown): number {
  if (typeof value === 'number' && value >= 0) return value;
  throw optionError(name, value, 'a fraction that is not negative (0.05 is 5 %), or Infinity for no limit');
}

function oneOf<T extends string>(name: string, value: unknown, accepted: readonly T[]): T {
  if (accepted.includes(value as T)) return value as T;
  throw optionError(name, value, accepted.map((v) => `'${v}'`).join(' or '));
}

type Checks = { [K in keyof Defaults]: (value: unknown, name: string) => Defaults[K] };

/** Checks of the defaults, and of the options of the same names of a connection or server. */
const checks: Checks = {
  enabled: (value, name) => {
    if (typeof value === 'boolean') return value;
    throw optionError(name, value, 'true or false');
  },
  replicate: (value) => (typeof value === 'function' ? (value as Predicate) : asMode(value)),
  threshold: (value, name) => whole(name, value, 0, MOST_BYTES),
  lull: (value, name) => milliseconds(name, value),
  copyDelay: (value, name) => {
    if (typeof value === 'number') return milliseconds(name, value);
    quantileOf(value, name);
    return value as CopyDelay;
  },
  hedgeOn: (value, name) => oneOf(name, value, ['first-byte', 'handshake']),
  coldDelay: (value, name) => milliseconds(name, value, 1),
  pairTimeout: (value, name) => milliseconds(name, value),
  loser: (value, name) =>
    value === undefined ? undefined : oneOf<'rst' | 'fin'>(name, value, ['rst', 'fin']),
  peer: (value, name) => oneOf(name, value, ['auto', 'repnet', 'plain']),
  budget: (value, name) => {
    if (typeof value !== 'object' || value === null) throw optionError(name, value, '{ bytes, connections }');
    const { bytes, connections } = value as Defaults['budget'];
    return checked(
      { bytes, connections },
      { bytes: (v, n) => fraction(`${name}.${n}`, v), connections: (v, n) => fraction(`${name}.${n}`, v) },
    );
  },
  control: (value, name) => {
    if (typeof value === 'number' && value >= 0 && value <= 1) return value;
    throw optionError(name, value, 'a share from 0 to 1');
  },
  waitTimeout: (value, name) => milliseconds(name, value, 1),
  waitEntries: (value, name) => whole(name, value, 1, MOST_BYTES),
  archiveBytes: (value, name) => whole(name, value, 0, Number.MAX_SAFE_INTEGER),
};

/**
 * Returns an object with the properties of `values`, which takes no other, and only values that
 * pass their check.
 */
function checked<T extends object>(
  values: T,
  by: { [K in keyof T]: (value: unknown, name: string) => T[K] },
): T {
  const kept = { ...values };
  const names = Object.keys(values);
  // A name that is no property of the object is assigned by way of its prototype.
  const refusing = new Proxy(Object.prototype, {
    set: (_, name) => {
      const meant = meantFor(String(name), names);
      if (meant !== undefined) throw misspelt(String(name), meant);
      throw new RepnetError(
        'ERR_REPNET_OPTION',
        `There is no ${String(name)} here; there are ${names.join(', ')}`,
      );
    },
  });
  const object = Object.create(refusing) as T;
  for (const name of Object.keys(values) as (keyof T & string)[]) {
    kept[name] = by[name](values[name], name);
    Object.defineProperty(object, name, {
      enumerable: true,
      get: () => kept[name],
      set: (value: unknown) => {
        kept[name] = by[name](value, name);
      },
    });
  }
  return Object.preventExtensions(object);
}

/** @throws RepnetError ERR_REPNET_OPTION if a value does not fit its property. */
export const defaults: Defaults = checked<Defaults>(
  {
    enabled: true,
    replicate: modeFromEnvironment(process.env.REPNET_MODE),
    threshold: 100_000,
    lull: 50,
    copyDelay: 0,
    hedgeOn: 'first-byte',
    coldDelay: 10,
    pairTimeout: 1_000,
    loser: undefined,
    peer: 'auto',
    budget: { bytes: Number.POSITIVE_INFINITY, connections: Number.POSITIVE_INFINITY },
    control: 0,
    waitTimeout: 3_000,
    waitEntries: 65_536,
    archiveBytes: 64 * 1024 * 1024,
  },
  checks,
);

/** Kill switch: sets `defaults.enabled` to false. */
export function disable(): void {
  defaults.enabled = false;
}
export function enable(): void {
  defaults.enabled = true;
}
export function isEnabled(): boolean {
  return defaults.enabled;
}

/**
 * Returns the mode of a connection: its own option, its socket's, the process default, in that
 * order.
 */
export function chooseMode(
  own: ReplicationOptions,
  socket: ReplicationOptions | undefined,
  target: FlowTarget,
): Mode {
  if (!defaults.enabled) return false;
  const wanted = own.replicate ?? socket?.replicate ?? defaults.replicate;
  return asMode(typeof wanted === 'function' ? wanted(target) : wanted);
}

/** @throws RepnetError ERR_REPNET_OPTION */
export function asMode(value: unknown): Mode {
  switch (value) {
    case 'flow':
    case 'syn':
      return value;
    case true:
      return 'flow';
    case false:
    case undefined:
    case null:
      return false;
    default:
      throw optionError('replicate', value, "'flow', 'syn', false or a function that returns one of these");
  }
}

export interface Replication {
  replicaPort: number;
  threshold: number;
  lull: number;
  /** The delay in milliseconds; `coldDelay` until there are enough flows for the quantile. */
  copyDelay: number;
  hedgeOn: 'first-byte' | 'handshake';
  /**
   * The quantile of recent flows' times that `copyDelay` follows; undefined if it is a fixed time.
   */
  quantile: number | undefined;
  pairTimeout: number;
  loser: 'rst' | 'fin' | undefined;
  peer: 'auto' | 'repnet' | 'plain';
}

/**
 * Returns the options of a connection or server, complete and checked.
 * @throws RepnetError ERR_REPNET_OPTION
 */
export function replicationOptions(
  own: ReplicationOptions,
  socket: ReplicationOptions | undefined,
  port: number,
): Replication {
  // What neither says was checked when it became the default.
  const pick = <K extends keyof ReplicationOptions & keyof Defaults>(key: K, said: unknown): Defaults[K] =>
    said == null ? defaults[key] : checks[key](said, key);
  const replicaPort = own.replicaPort ?? socket?.replicaPort;
  if (replicaPort != null) {
    if (!(Number.isInteger(replicaPort) && replicaPort > 0 && replicaPort < 65536))
      throw optionError('replicaPort', replicaPort, 'a port from 1 to 65535');
    if (replicaPort === port) throw samePort(port);
  }
  const copyDelay = pick('copyDelay', own.copyDelay ?? socket?.copyDelay);
  const coldDelay = pick('coldDelay', own.coldDelay ?? socket?.coldDelay);
  return {
    replicaPort: replicaPort ?? port + 1,
    threshold: pick('threshold', own.threshold ?? socket?.threshold),
    lull: pick('lull', own.lull ?? socket?.lull),
    copyDelay: typeof copyDelay === 'number' ? copyDelay : coldDelay,
    hedgeOn: pick('hedgeOn', own.hedgeOn ?? socket?.hedgeOn),
    quantile: typeof copyDelay === 'number' ? undefined : quantileOf(copyDelay, 'copyDelay'),
    pairTimeout: pick('pairTimeout', own.pairTimeout ?? socket?.pairTimeout),
    loser: pick('loser', own.loser ?? socket?.loser),
    peer: pick('peer', own.peer ?? socket?.peer),
  };
}

export function samePort(port: number): RepnetError {
  return optionError('replicaPort', port, 'another port than the first');
}

/**
 * Options of a server, before it listens.
 * @throws RepnetError ERR_REPNET_OPTION
 */
export function checkServerOptions(options: ServerReplicationOptions): void {
  checkOptionNames(options);
  replicationOptions(options, undefined, 0);
  if (options.replicate !== undefined) checks.replicate(options.replicate, 'replicate');
  const { addresses } = options;
  if (addresses === undefined) return;
  if (!Array.isArray(addresses)) throw optionError('addresses', addresses, "a list of 'host:port'");
  for (const address of addresses)
    if (typeof address !== 'string' || !/:\d{1,5}$/.test(address))
      throw optionError('addresses', address, "'host:port' (IPv6 in brackets) or ':port'");
}
