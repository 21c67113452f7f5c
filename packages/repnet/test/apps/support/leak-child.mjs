/** leak-child.mjs REPLICATE FLOWS: request-response flows to a server in the same process; prints what stays behind. */
import { once } from 'node:events';
import repnet from 'repnet';

const replicate = process.argv[2] === 'false' ? false : process.argv[2];
const flows = Number(process.argv[3]);
const WORKERS = 8;

// A server remembers pairs for five of these on purpose; short, so that the memory is full early in the run.
repnet.defaults.waitTimeout = 200;
repnet.defaults.pairTimeout = 150;

const server = repnet.createServer({ noDelay: true }, (socket) => {
  socket.on('data', (chunk) => socket.end(chunk)).on('error', () => {});
});
server.listen(0, '127.0.0.1');
await once(server, 'listening');
const { port } = server.address();
const request = Buffer.alloc(1000, 'r');
let done = 0;

function oneFlow() {
  return new Promise((resolve, reject) => {
    const socket = repnet.connect({ port, host: '127.0.0.1', replicate, noDelay: true });
    let received = 0;
    socket.on('data', (chunk) => (received += chunk.length)).on('error', reject);
    socket.on('close', () => {
      if (received !== request.length) return reject(new Error(`${received} of ${request.length} bytes`));
      done++;
      resolve();
    });
    socket.write(request);
  });
}

async function run(count) {
  await Promise.all(
    Array.from({ length: WORKERS }, async (_, worker) => {
      for (let i = worker; i < count; i += WORKERS) await oneFlow();
    }),
  );
}

/** Wait until nothing of the finished flows is left but the listeners, or a few seconds have passed. */
async function handles() {
  const count = () => process.getActiveResourcesInfo().filter((name) => name.startsWith('TCP')).length;
  for (let tries = 0; tries < 100 && count() > LISTENERS; tries++)
    await new Promise((resolve) => setTimeout(resolve, 50));
  return count();
}

await new Promise((resolve) => setTimeout(resolve, 50)); // ports that were tried for a free pair are closed by now
const LISTENERS = process.getActiveResourcesInfo().filter((name) => name.startsWith('TCP')).length;
const samples = [];
for (let tenth = 0; tenth < 10; tenth++) {
  await run(flows / 10);
  await new Promise((resolve) => setImmediate(resolve));
  globalThis.gc();
  const { heapUsed, external } = process.memoryUsage();
  samples.push({ heapUsed, external });
}
const handlesAfter = await handles();
process.stdout.write(JSON.stringify({ samples, handlesBefore: LISTENERS, handlesAfter, done }));
server.close();
