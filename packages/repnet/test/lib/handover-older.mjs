/** A program that forks before it loads the library. */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import { fileURLToPath } from 'node:url';

const HOST = '127.0.0.1';
const child = fork(fileURLToPath(new URL('handover-child.mjs', import.meta.url)));
await once(child, 'message');
const { default: repnet } = await import('../../dist/index.js');
const server = repnet.createServer({ pauseOnConnect: true }, (socket) => child.send('first', socket));
await new Promise((resolve) => server.listen(0, HOST, resolve));
const client = net.connect(server.address().port, HOST);
client.write('a request');
console.log(String(Buffer.concat(await client.toArray())));
server.close();
child.disconnect();
process.exit();
