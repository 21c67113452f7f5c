/** Health and metrics of the sidecar over HTTP. */
import * as http from 'node:http';
import { formatMetrics, libraryMetrics, type Metric } from 'repnet/prometheus';
import type { RouteCounts, Sidecar } from './sidecar.js';

/**
 * GET /healthz: 200 while the process answers. GET /readyz: 200 only while every route accepts (503
 * when starting or draining). GET /metrics: Prometheus text. Anything else: 404, another method:
 * 405.
 */
export function adminServer(sidecar: Sidecar): http.Server {
  const server = http.createServer((request, response) => {
    const answer = (status: number, body: string, type = 'text/plain; charset=utf-8'): void => {
      response.writeHead(status, { 'content-type': type }).end(request.method === 'HEAD' ? undefined : body);
    };
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.setHeader('allow', 'GET, HEAD');
      answer(405, 'method not allowed\n');
      return;
    }
    switch (request.url?.split('?')[0]) {
      case '/healthz':
        return answer(200, 'ok\n');
      case '/readyz':
        return answer(sidecar.state === 'ready' ? 200 : 503, `${sidecar.state}\n`);
      case '/metrics':
        return answer(
          200,
          formatMetrics([...proxyMetrics(sidecar), ...libraryMetrics()]),
          'text/plain; version=0.0.4; charset=utf-8',
        );
      default:
        return answer(404, 'not found; try /healthz, /readyz or /metrics\n');
    }
  });
  server.requestTimeout = 5_000;
  server.maxConnections = 64; // an operator and a scraper, not a public service
  return server;
}

function proxyMetrics({ counts, replicates }: Sidecar): Metric[] {
  const perRoute = (read: (count: RouteCounts) => number): Metric['samples'] =>
    counts.map((count) => ({ labels: { route: count.route }, value: read(count) }));
  return [
    {
      name: 'repnet_proxy_replication_enabled',
      type: 'gauge',
      help: '1 while new connections are replicated, 0 after SIGUSR2.',
      samples: [{ labels: {}, value: replicates ? 1 : 0 }],
    },
    {
      name: 'repnet_proxy_open_connections',
      type: 'gauge',
      help: 'Connections being relayed.',
      samples: perRoute((count) => count.open),
    },
    {
      name: 'repnet_proxy_accepted_total',
      type: 'counter',
      help: 'Connections accepted.',
      samples: perRoute((count) => count.accepted),
    },
    {
      name: 'repnet_proxy_rejected_total',
      type: 'counter',
      help: 'Connections reset because of --max-connections.',
      samples: perRoute((count) => count.rejected),
    },
    {
      name: 'repnet_proxy_ended_total',
      type: 'counter',
      help: 'Connections ended, by reason.',
      samples: counts.flatMap((count) =>
        Object.entries(count.ends).map(([end, value]) => ({ labels: { route: count.route, end }, value })),
      ),
    },
    {
      name: 'repnet_proxy_bytes_total',
      type: 'counter',
      help: 'Bytes relayed by connections that have ended; in: towards the destination.',
      samples: counts.flatMap((count) => [
        { labels: { route: count.route, direction: 'in' }, value: count.bytesIn },
        { labels: { route: count.route, direction: 'out' }, value: count.bytesOut },
      ]),
    },
  ];
}
