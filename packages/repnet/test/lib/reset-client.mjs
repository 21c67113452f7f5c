/**
 * Connects from a source port, resets the connection as soon as it is established and it has said `bytes`, and ends. Arguments: port,
 * source address and port, bytes in hexadecimal.
 */
import net from 'node:net';

const [port, localAddress, localPort, bytes = ''] = process.argv.slice(2);
const socket = net.connect(
  { host: '127.0.0.1', port: Number(port), localAddress, localPort: Number(localPort) },
  () => socket.write(Buffer.from(bytes, 'hex'), () => socket.resetAndDestroy()),
);
