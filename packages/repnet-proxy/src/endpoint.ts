/** Where a route listens and where it connects to, written as a URL. */
import { parseBytes, parseChoice, parseCount, parseDelay, UsageError } from 'repnet-cli/units';

export type Loser = 'rst' | 'fin';
export type PeerKind = 'auto' | 'repnet' | 'plain';

/**
 * Options of one endpoint; what is not named follows the command's own, and those the library's
 * defaults.
 */
export interface ListenOptions {
  readonly replicaPort?: number;
  /** bytes */
  readonly threshold?: number;
  readonly loser?: Loser;
}

export interface ConnectOptions extends ListenOptions {
  /** ms */
  readonly copyDelay?: number;
  readonly peer?: PeerKind;
}

interface Place {
  readonly host: string;
  readonly port: number;
}

export type ListenEndpoint =
  | ({ readonly kind: 'tcp' } & Place)
  | { readonly kind: 'unix'; readonly path: string }
  | ({ readonly kind: 'repnet' } & Place & ListenOptions);

export type ConnectEndpoint =
  | ({ readonly kind: 'tcp' } & Place)
  | { readonly kind: 'unix'; readonly path: string }
  | ({ readonly kind: 'flow' | 'syn' } & Place & ConnectOptions);

const LISTEN = 'tcp://HOST:PORT, unix:/PATH or repnet://HOST:PORT';
const CONNECT = 'tcp://HOST:PORT, unix:/PATH, syn://HOST:PORT or flow://HOST:PORT';

/** @throws UsageError ERR_ENDPOINT */
export function parseListen(text: string, where = '--listen'): ListenEndpoint {
  return parse(text, where, ['tcp', 'unix', 'repnet'], LISTEN) as ListenEndpoint;
}

/** @throws UsageError ERR_ENDPOINT */
export function parseConnect(text: string, where = '--connect'): ConnectEndpoint {
  const endpoint = parse(text, where, ['tcp', 'unix', 'syn', 'flow'], CONNECT) as ConnectEndpoint;
  if (endpoint.kind !== 'unix' && endpoint.port === 0) throw refuse(text, where, CONNECT);
  return endpoint;
}

function refuse(text: string, where: string, expected: string, why = ''): UsageError {
  return new UsageError(
    'ERR_ENDPOINT',
    `${where}: '${text}' ${why === '' ? 'is not an endpoint' : why}; expected ${expected}`,
  );
}

function parse(text: string, where: string, kinds: readonly string[], expected: string): object {
  const [, kind, rest] = /^([a-z]+):(.*)$/.exec(text) ?? [];
  if (kind === undefined || rest === undefined || !kinds.includes(kind)) throw refuse(text, where, expected);
  if (kind === 'unix') {
    const path = rest.replace(/^\/\//, '');
    if (!path.startsWith('/')) throw refuse(text, where, expected, 'has no absolute path');
    return { kind, path };
  }
  const match = /^\/\/(?:\[([^\]]+)\]|([^:/?]+)):(\d{1,5})(?:\?(.*))?$/.exec(rest);
  if (match === null || Number(match[3]) > 65535) throw refuse(text, where, expected);
  const query = new URLSearchParams(match[4] ?? '');
  if (kind === 'tcp' && query.size > 0)
    throw refuse(text, where, expected, 'has options, and tcp takes none');
  const names = kind === 'repnet' ? LISTEN_OPTIONS : CONNECT_OPTIONS;
  const port = Number(match[3]);
  const own = options(query, names, text, where);
  if (own.replicaPort === port)
    throw refuse(text, where, 'another port for the copies', 'has its own port as replicaPort');
  return { kind, host: match[1] ?? match[2], port, ...own };
}

const LISTEN_OPTIONS = ['replicaPort', 'threshold', 'loser'] as const;
const CONNECT_OPTIONS = [...LISTEN_OPTIONS, 'copyDelay', 'peer'] as const;

function options(
  query: URLSearchParams,
  names: readonly string[],
  text: string,
  where: string,
): ConnectOptions {
  const found: Record<string, unknown> = {};
  for (const [name, value] of query) {
    if (!names.includes(name)) throw refuse(text, where, names.join(', '), `has the option '${name}'`);
    try {
      found[name] = OPTIONS[name as keyof typeof OPTIONS](value, `${where}: '${text}': ${name}`);
    } catch (error) {
      throw new UsageError('ERR_ENDPOINT', (error as UsageError).message);
    }
  }
  return found;
}

const OPTIONS: { [K in keyof ConnectOptions]-?: (text: string, where: string) => ConnectOptions[K] } = {
  replicaPort: (text, where) => parseCount(text, where, 1, 65_535),
  threshold: parseThreshold,
  loser: parseLoser,
  copyDelay: parseDelay,
  peer: parsePeer,
};

/** '100KB' -> 100000 (bytes), as far as the protocol can say it. */
export function parseThreshold(text: string, where: string): number {
  const bytes = parseBytes(text, where);
  if (bytes <= 0xffff_ffff) return bytes;
  throw new UsageError('ERR_QUANTITY', `${where}: '${text}' is not below 4GiB`);
}

export function parseLoser(text: string, where: string): Loser {
  return parseChoice(text, where, ['rst', 'fin']);
}

export function parsePeer(text: string, where: string): PeerKind {
  return parseChoice(text, where, ['auto', 'repnet', 'plain']);
}

/** The endpoint as it would be written, for logs and metric labels. */
export function describeEndpoint(endpoint: ListenEndpoint | ConnectEndpoint): string {
  if (endpoint.kind === 'unix') return `unix:${endpoint.path}`;
  return `${endpoint.kind}://${endpoint.host.includes(':') ? `[${endpoint.host}]` : endpoint.host}:${endpoint.port}`;
}
