/** Where a route listens and where it connects to, written as a URL. */
import { UsageError } from '../cli/units.js';

export type ListenEndpoint =
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number }
  | { readonly kind: 'unix'; readonly path: string }
  | {
      readonly kind: 'repnet';
      readonly host: string;
      readonly port: number;
      readonly replicaPort?: number;
      readonly pairing?: Pairing;
    };

export type ConnectEndpoint =
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number }
  | { readonly kind: 'unix'; readonly path: string }
  | {
      readonly kind: 'flow' | 'syn';
      readonly host: string;
      readonly port: number;
      readonly replicaPort?: number;
      readonly pairing?: Pairing;
    };

export type Pairing = 'address' | 'token';

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
  return { kind, host: match[1] ?? match[2], port: Number(match[3]), ...options(query, text, where) };
}

function options(
  query: URLSearchParams,
  text: string,
  where: string,
): { replicaPort?: number; pairing?: Pairing } {
  const found: { replicaPort?: number; pairing?: Pairing } = {};
  for (const [name, value] of query) {
    if (name === 'replicaPort' && /^\d{1,5}$/.test(value) && Number(value) >= 1 && Number(value) <= 65535)
      found.replicaPort = Number(value);
    else if (name === 'pairing' && (value === 'address' || value === 'token')) found.pairing = value;
    else
      throw refuse(
        text,
        where,
        'replicaPort=PORT or pairing=address|token',
        `has the option '${name}=${value}'`,
      );
  }
  return found;
}

/** The endpoint as it would be written, for logs and metric labels. */
export function describeEndpoint(endpoint: ListenEndpoint | ConnectEndpoint): string {
  if (endpoint.kind === 'unix') return `unix:${endpoint.path}`;
  return `${endpoint.kind}://${endpoint.host.includes(':') ? `[${endpoint.host}]` : endpoint.host}:${endpoint.port}`;
}
