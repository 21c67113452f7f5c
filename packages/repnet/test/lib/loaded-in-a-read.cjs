// Loads the library in the callback of a read, and tells whether it knows this net.
const net = require('node:net');

const server = net
  .createServer((socket) => socket.end('some bytes'))
  .listen(0, '127.0.0.1', () => {
    net.connect(server.address().port, '127.0.0.1').once('data', () => {
      console.log(require('../../dist/index.js').supported);
      server.close();
    });
  });
