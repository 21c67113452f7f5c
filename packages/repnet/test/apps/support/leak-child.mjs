/** leak-child.mjs REPLICATE FLOWS: request-response flows to a server in the same process; prints what stays behind. */
import { once } from 'node:events';
import repnet from 'repnet';
import { settle, ticks, until } from '../../lib/support.mjs';

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

const handles = () => process.getActiveResourcesInfo().filter((name) => name.startsWith('TCP')).length;

await settle(); // ports that were tried for a free pair are closed by now
const LISTENERS = handles();
/**
 * What is in use when nothing more can be freed: receive buffers come in slabs that are free only some collections after the last
 * flow, and pairs are remembered for a second. Collects until the figures have not fallen for ten times in a row.
 */
async function settled() {
  const least = { heapUsed: Number.POSITIVE_INFINITY, external: Number.POSITIVE_INFINITY };
  for (let still = 0, tries = 0; still < 10 && tries < 100; tries++, still++) {
    await ticks(1, 120);
    globalThis.gc();
    const now = process.memoryUsage();
    for (const name of Object.keys(least)) {
      if (now[name] >= least[name]) continue;
      if (now[name] < least[name] - 1024) still = 0;
      least[name] = now[name];
    }
  }
  return least;
}

const samples = [];
for (let fifth = 0; fifth < 5; fifth++) {
  await run(flows / 5);
  samples.push(await settled());
}
await until(
  () => handles() <= LISTENERS,
  'nothing of the finished flows is left but the listeners',
  () => done,
);
const handlesAfter = handles();
process.stdout.write(JSON.stringify({ samples, handlesBefore: LISTENERS, handlesAfter, done }));
server.close();
