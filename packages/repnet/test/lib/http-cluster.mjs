// An HTTP server of this library in two workers, which answers with how many bytes came; tells its parent the port.
import cluster from 'node:cluster';
import { createServer } from '../../dist/adapters/http.js';

if (cluster.isPrimary) {
  const workers = [cluster.fork(), cluster.fork()];
  let up = 0;
  for (const worker of workers)
    worker.on('message', ({ port }) => {
      if (++up === workers.length) process.send(port);
    });
  process.on('disconnect', () => process.exit());
} else {
  const server = createServer(async (request, response) => {
    let bytes = 0;
    for await (const chunk of request) bytes += chunk.length;
    response.end(String(bytes));
  });
  server.listen(0, '127.0.0.1', () => process.send({ port: server.address().port }));
}
