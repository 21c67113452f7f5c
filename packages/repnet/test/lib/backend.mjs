// backend.mjs OPTIONS LISTEN: one of several processes behind a balancer; answers each request. Tells its parent when flows may
// start with their second connection, and when asked what requests it has had.
import repnet from '../../dist/index.js';
import { grown } from './support.mjs';

const [options, listen] = process.argv.slice(2).map((text) => JSON.parse(text));
repnet.defaults.waitTimeout = 300;
const requests = [];
const server = repnet.createServer(options, (socket) => {
  socket.on('error', () => {});
  socket.on('data', (chunk) => {
    requests.push(chunk.toString());
    socket.write(chunk);
  });
});
server.listen(listen, () => grown().then(() => process.send(server.address().port)));
process.on('message', () => process.send({ requests, stats: repnet.stats() }));
process.on('disconnect', () => process.exit());
