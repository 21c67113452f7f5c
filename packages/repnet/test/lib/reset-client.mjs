/** Connects from a source port, resets the connection as soon as it is established, and ends. Arguments: port, source port. */
import net from 'node:net';

const [port, localPort] = process.argv.slice(2).map(Number);
const socket = net.connect({ host: '127.0.0.1', port, localPort }, () => socket.resetAndDestroy());
