// stalled-client.mjs PORT PAIR_TIMEOUT: one flow; stands still for longer than PAIR_TIMEOUT while the reply arrives, as a
// process does that is stopped, swapped out or collects its garbage. Tells its parent what the application saw.
import repnet from '../../dist/index.js';

const [port, pairTimeout] = process.argv.slice(2).map(Number);
const socket = repnet.connect({ host: '127.0.0.2', port, replicate: 'flow', peer: 'repnet', pairTimeout });
const seen = { bytes: 0, ends: 0, errors: [] };
socket.on('data', (chunk) => (seen.bytes += chunk.length));
socket.on('end', () => seen.ends++);
socket.on('error', (error) => seen.errors.push(error.code));
socket.on('close', () => process.send(seen, () => process.disconnect()));
socket.write(Buffer.alloc(1_000));
process.once('message', () => {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pairTimeout + 300);
});
