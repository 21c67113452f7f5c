/** The services and the ways to each: what runs beside the server, and what its clients do. */
import express from 'express';
import { AbstractConnector, Redis } from 'ioredis';
import pg from 'pg';
import repnet from 'repnet';
import * as http from 'repnet/http';
import { connector } from 'repnet/undici';
import { Agent, request } from 'undici';

export const SERVER = '10.77.0.3';
export const LARGEST = 100_000;
const BODY = Buffer.alloc(LARGEST, 'b');
/** Ports: a service's own, and repnet-proxy's at both ends, which takes the next one, too. */
const PORTS = { http: 8080, repnet: 8090, redis: 6379, postgres: 5432, proxy: 7000, local: 7100 };

/** repnet-proxy in front of a service, and beside its clients. */
const proxies = (port) => ({
  server: ['--listen', `repnet://${SERVER}:${PORTS.proxy}`, '--connect', `tcp://127.0.0.1:${port}`],
  client: [
    '--listen',
    `tcp://127.0.0.1:${PORTS.local}`,
    '--connect',
    `flow://${SERVER}:${PORTS.proxy}?peer=repnet`,
  ],
});

/**
 * A client of Redis or PostgreSQL: plain, by RepSYN to the unmodified server, or plain to the proxy
 * beside it.
 */
const WAYS = (port) => [
  { way: 'net', host: SERVER, port, replicate: false },
  { way: 'RepSYN', host: SERVER, port, replicate: 'syn' },
  { way: 'repnet-proxy', host: '127.0.0.1', port: PORTS.local, replicate: false },
];

function httpClient(connect, port) {
  const agent = new Agent({ connect, connections: 1 });
  return {
    async ask(bytes) {
      const { body } = await request(`http://${SERVER}:${port}/${bytes}`, { dispatcher: agent });
      return (await body.arrayBuffer()).byteLength;
    },
    close: () => agent.close(),
  };
}

function redisClient({ host, port, replicate }) {
  class Connector extends AbstractConnector {
    constructor(options) {
      super(options.disconnectTimeout);
    }

    async connect() {
      this.connecting = true;
      const target = { host, port, noDelay: true };
      const extra = replicate ? { replicate, peer: 'plain' } : { replicate: false };
      this.stream = repnet.connect({ ...target, ...extra });
      this.stream.once('error', (error) => (this.firstError = error));
      return this.stream;
    }
  }
  const redis = new Redis({ Connector, enableReadyCheck: false, retryStrategy: null });
  redis.on('error', () => {});
  return {
    ask: async (bytes) => (await redis.getrange('body', 0, bytes - 1)).length,
    close: async () => redis.disconnect(),
  };
}

function postgresClient({ host, port, replicate }) {
  const stream = () => new repnet.Socket(replicate ? { replicate, peer: 'plain' } : { replicate: false });
  const client = new pg.Client({ host, port, user: 'tester', database: 'postgres', stream });
  client.on('error', () => {});
  const connected = client.connect();
  connected.catch(() => {});
  return {
    async ask(bytes) {
      await connected;
      const { rows } = await client.query("select repeat('b', $1::int) as body", [bytes]);
      return rows[0].body.length;
    },
    close: () => client.end(),
  };
}

function listenHttp() {
  const app = express();
  app.get('/:bytes', (asked, reply) => reply.end(BODY.subarray(0, Number(asked.params.bytes))));
  app.listen(PORTS.http, SERVER);
  http.createServer(app).listen(PORTS.repnet, SERVER);
}

/**
 * name: what the table calls it. programs: what is started beside the server, given where they are.
 * listen: what the server's own process does. proxies: how repnet-proxy is started at both ends.
 * ways: how clients reach it; each opens one connection.
 */
export const SERVICES = {
  http: {
    name: 'Express, by undici',
    listen: listenHttp,
    ways: [
      { way: 'net', open: () => httpClient({}, PORTS.http) },
      { way: 'RepSYN', open: () => httpClient(connector({ replicate: 'syn' }), PORTS.repnet) },
      { way: 'RepFlow', open: () => httpClient(connector({ replicate: 'flow' }), PORTS.repnet) },
    ],
  },
  redis: {
    name: 'Redis, by ioredis',
    program: ({ redis }) => [
      redis,
      '--bind',
      '0.0.0.0',
      '--port',
      `${PORTS.redis}`,
      '--save',
      '',
      '--protected-mode',
      'no',
    ],
    async listen() {
      const redis = new Redis(PORTS.redis, '127.0.0.1');
      redis.on('error', () => {}); // until it listens
      await redis.set('body', BODY);
      redis.disconnect();
    },
    proxies: proxies(PORTS.redis),
    ways: WAYS(PORTS.redis).map((to) => ({ way: to.way, open: () => redisClient(to) })),
  },
  postgres: {
    name: 'PostgreSQL, by pg',
    // In a user and IPC namespace of its own: it refuses to run as root, and leaves shared memory
    // behind when it is killed.
    program: ({ postgres, data }) => [
      ...['unshare', '--user', '--ipc', '--map-user=1000', postgres, '-D', data],
      ...['listen_addresses=*', `port=${PORTS.postgres}`, 'unix_socket_directories=', 'fsync=off'].flatMap(
        (set) => ['-c', set],
      ),
      ...['-c', 'dynamic_shared_memory_type=mmap', '-c', 'log_min_messages=fatal'],
    ],
    proxies: proxies(PORTS.postgres),
    ways: WAYS(PORTS.postgres).map((to) => ({ way: to.way, open: () => postgresClient(to) })),
  },
};
