/** server.mjs PORT: listens at every address that is to answer; tells its parent which connections came, and with how many bytes. */
import net from 'node:net';
import { addressOf } from './rows.mjs';

const port = Number(process.argv[2]);
const listening = [];
let seen = [];

function serve(address, resets) {
  const server = net.createServer((socket) => {
    const connection = { address, bytes: 0 };
    seen.push(connection);
    socket.on('error', () => {});
    // When every client has seen the handshake: one that is reset sooner fails, or is established, as it happens.
    if (resets) return setTimeout(() => socket.resetAndDestroy(), 20);
    socket.on('data', (chunk) => {
      connection.bytes += chunk.length;
      socket.end('HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n');
    });
  });
  listening.push(new Promise((done) => server.listen(port, address, done)));
}

for (const family of [4, 6])
  for (const kind of 'ASBX') for (let n = 0; n < 4; n++) serve(addressOf(family, kind, n), kind === 'X');
await Promise.all(listening);
process.send('ready');
process.on('message', () => {
  process.send(seen);
  seen = [];
});
process.on('disconnect', () => process.exit());
