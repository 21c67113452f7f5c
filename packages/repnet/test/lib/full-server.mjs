// full-server.mjs API BACKLOG: an echo server of 'net' or 'repnet' with queues of that length for connections to accept, which fill up
// when it is stopped by a signal. Tells its parent the port, and when asked what its connections have brought.
import net from 'node:net';
import repnet from '../../dist/index.js';
import { ticks } from './support.mjs';

const [name, backlog] = process.argv.slice(2);
const api = name === 'net' ? net : repnet;
repnet.defaults.waitTimeout = 200;
const connections = [];
const server = api.createServer((socket) => {
  const seen = { bytes: 0 };
  connections.push(seen);
  socket.on('error', () => {});
  socket.on('data', (chunk) => {
    seen.bytes += chunk.length;
    socket.write(chunk);
  });
});
server.listen({ host: '127.0.0.1', port: 0, backlog: Number(backlog) }, () => {
  // Past the time in which a server that has just begun lets no flow start with its second connection, whose client may be as
  // patient as three of its waits. It has four ticks in each.
  ticks(12, 50).then(() => process.send(server.address().port));
});
process.on('message', () => process.send(connections.map(({ bytes }) => bytes)));
process.on('disconnect', () => process.exit());
