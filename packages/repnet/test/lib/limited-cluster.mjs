// limited-cluster.mjs API MOST: an echo server of 'net' or 'repnet' in two workers that take MOST connections each. Its parent
// gets the port, and as an answer to 'report' the connections that each worker counts and the 'drop' events of all; 'drop' makes
// the workers drop connections beyond MOST rather than leave them to each other.
import cluster from 'node:cluster';
import net from 'node:net';
import repnet from '../../dist/index.js';

const [name, most] = process.argv.slice(2);

if (cluster.isPrimary) {
  const workers = [cluster.fork(), cluster.fork()];
  let answers = [];
  for (const worker of workers)
    worker.on('message', (answer) => {
      answers.push(answer);
      if (answers.length < workers.length) return;
      process.send(answers);
      answers = [];
    });
  process.on('message', (message) => {
    for (const worker of workers) worker.send(message);
  });
  process.on('disconnect', () => process.exit());
} else {
  const drops = [];
  const api = name === 'net' ? net : repnet;
  const server = api.createServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', (chunk) => socket.write(chunk));
  });
  server.maxConnections = Number(most);
  server.on('drop', (data) => drops.push(data));
  server.listen(0, '127.0.0.1', () => process.send(server.address().port));
  process.on('message', (message) => {
    if (message === 'drop') server.dropMaxConnection = true;
    server.getConnections((_, connections) => process.send({ connections, drops }));
  });
}
