// A RepNet echo server in two workers; tells its parent the port and, when asked, the connections of all workers.
import cluster from 'node:cluster';
import repnet from '../../dist/index.js';

if (cluster.isPrimary) {
  const workers = [cluster.fork(), cluster.fork()];
  let counted = 0;
  let answers = 0;
  let up = 0;
  for (const worker of workers)
    worker.on('message', (message) => {
      if (message.port !== undefined && ++up === workers.length) process.send(message.port);
      if (message.connections !== undefined) {
        counted += message.connections;
        if (++answers === workers.length) process.send(counted);
      }
    });
  process.on('message', () => {
    for (const worker of workers) worker.send('count');
  });
  process.on('disconnect', () => process.exit());
} else {
  let connections = 0;
  const server = repnet.createServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      connections += /^request/.test(chunk.toString()) ? 1 : 0;
      socket.write(chunk);
    });
  });
  server.listen(0, '127.0.0.1', () => process.send({ port: server.address().port }));
  process.on('message', () => process.send({ connections }));
}
