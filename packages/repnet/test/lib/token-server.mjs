// token-server.mjs: a server that pairs by token and answers lines; tells its port, and when asked how many connections it
// has given to the application.
import repnet from '../../dist/index.js';

let count = 0;
const server = repnet.createServer({ pairing: 'token' }, (socket) => {
  count++;
  socket.on('error', () => {});
  socket.once('data', () => socket.end('answer'));
});
server.listen(0, '127.0.0.1', () => process.send(server.address().port));
process.on('disconnect', () => process.exit());
process.on('message', () => process.send(count));
