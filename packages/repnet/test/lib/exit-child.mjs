// Exits in the callback of its last write: as a client of a port, or as a server that answers and tells its port.
import net from 'node:net';
import repnet from '../../dist/index.js';

const [role, name, size, options, port] = process.argv.slice(2);
const api = name === 'net' ? net : repnet;
const { server, ...own } = JSON.parse(options);
const last = (socket) => socket.write(Buffer.alloc(Number(size)), () => process.exit());

if (role === 'client') last(api.connect({ port: Number(port), host: '127.0.0.1', ...own }));
else {
  const listener = api.createServer(server, (socket) => socket.once('data', () => last(socket)));
  listener.listen(0, '127.0.0.1', () => process.send(listener.address().port));
}
