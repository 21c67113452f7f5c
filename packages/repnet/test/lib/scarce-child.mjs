/** Opens 220 flows and keeps them; says how many were answered, what failed, and how many second connections there are. */
import repnet from '../../dist/index.js';

const port = Number(process.argv[2]);
const failed = [];
const sockets = [];
let answered = 0;
for (let n = 0; n < 220; n++)
  await new Promise((resolve) => {
    const socket = repnet.connect({ port, host: '127.0.0.1', replicate: 'flow', peer: 'repnet' });
    sockets.push(socket);
    socket.on('error', ({ code }) => resolve(failed.push(code)));
    socket.once('data', () => resolve(answered++));
    socket.write('x');
  });
const copies = sockets.filter((socket) => repnet.info(socket).paired).length;
process.stdout.write(JSON.stringify({ answered, failed, copies }));
process.exit();
