/**
 * A request and a reply whose lengths are declared and whose bytes can be checked at any offset, so that a byte that is
 * lost, doubled, moved or of another flow shows; and a tally of what each side saw.
 */
import { randomInt } from 'node:crypto';
import { awhile, PATIENCE, until } from './support.mjs';

const HEADER = 16;
const TICK = 50;
/** Ticks for more than the twenty `pairTimeout`s (of 500 ms) for which an end waits for word of a second connection that is silent. */
const WORD_TICKS = 300;

/** Byte `offset` of the stream named `seed`. */
function fill(buffer, seed, offset) {
  for (let i = 0; i < buffer.length; i++) {
    const x = Math.imul((offset + i) ^ seed, 0x9e3779b1);
    buffer[i] = (x >>> 15) ^ (x >>> 24);
  }
  return buffer;
}

function check(chunk, seed, offset) {
  for (let i = 0; i < chunk.length; i++) {
    const x = Math.imul((offset + i) ^ seed, 0x9e3779b1);
    if (chunk[i] !== (((x >>> 15) ^ (x >>> 24)) & 0xff)) return offset + i;
  }
  return -1;
}

/** Watches one side: events in order, bytes checked against the stream `seed` after `skip` bytes of header. */
class Side {
  connections = 0;
  bytes = 0;
  wrong = -1;
  ends = 0;
  errors = [];
  closes = 0;
  expected = -1;
}

/**
 * A server for `request`: reads a header [seed, request length, reply length, keep], the request, and replies.
 * `flows` maps seeds to the server's side of each flow, `connections` 'address:port' to how many connections have come from
 * there, whatever they brought, and how many of them were silent.
 */
export function serve(server, flows, connections = new Map()) {
  server.on('connection', (socket) => {
    const source = `${socket.remoteAddress}:${socket.remotePort}`;
    const from = connections.get(source) ?? { count: 0, silent: 0 };
    connections.set(source, from);
    from.count++;
    from.silent++;
    const speaks = () => {
      from.silent--;
      socket.off('data', speaks).off('end', speaks);
    };
    socket.on('data', speaks).on('end', speaks);
    let header = Buffer.alloc(0);
    let side;
    let seed = 0;
    let replyLength = 0;
    let replied = false;
    const early = [];
    socket.on('data', (chunk) => {
      if (side === undefined) {
        header = Buffer.concat([header, chunk]);
        if (header.length < HEADER) return;
        seed = header.readUInt32BE(0);
        side = flows.get(seed);
        if (side === undefined) {
          side = new Side();
          flows.set(seed, side);
        }
        side.connections++;
        side.expected = header.readUInt32BE(4);
        replyLength = header.readUInt32BE(8);
        chunk = header.subarray(HEADER);
        for (const note of early) note();
      }
      const wrong = check(chunk, seed, side.bytes);
      if (wrong >= 0 && side.wrong < 0) side.wrong = wrong;
      side.bytes += chunk.length;
      if (side.bytes === side.expected && !replied) {
        replied = true;
        reply(socket, ~seed, replyLength);
      }
    });
    const note = (f) => (side === undefined ? early.push(f) : f());
    socket.on('end', () => note(() => side.ends++));
    socket.on('error', (error) => note(() => side.errors.push(error)));
    socket.on('close', () => note(() => side.closes++));
  });
}

function reply(socket, seed, length) {
  const piece = 40_000;
  for (let at = 0; at < length; at += piece)
    socket.write(fill(Buffer.allocUnsafe(Math.min(piece, length - at)), seed, at));
  socket.end();
}

/**
 * Sends one request and reads its reply. Resolves when the socket is closed, or after `timeout` milliseconds with `hung: true`, counted
 * in ticks, of which a process that stands still sees one; and, up to what any flow may take, only of those in which `counts()`.
 */
export function request(
  connect,
  { requestLength, replyLength, half = false, timeout = PATIENCE, counts = () => true, seed },
) {
  return new Promise((resolve) => {
    seed ??= randomInt(0xffffffff);
    const side = new Side();
    const server = new Side();
    side.expected = replyLength;
    const socket = connect();
    let done = false;
    let ticks = timeout / TICK;
    let all = Math.max(timeout, PATIENCE) / TICK;
    const timer = setInterval(() => {
      if (done) return;
      if (counts()) ticks--;
      if (--all > 0 && ticks > 0) return;
      clearInterval(timer);
      done = true;
      resolve({ seed, client: side, hung: true });
      socket.destroy();
    }, TICK);
    const header = Buffer.alloc(HEADER);
    header.writeUInt32BE(seed, 0);
    header.writeUInt32BE(requestLength, 4);
    header.writeUInt32BE(replyLength, 8);
    socket.on('connect', () => side.connections++);
    const body = fill(Buffer.allocUnsafe(requestLength), seed, 0);
    socket.write(Buffer.concat([header, body.subarray(0, 1000)]));
    if (requestLength > 1000) socket.write(body.subarray(1000));
    if (half) socket.end();
    socket.on('data', (chunk) => {
      const wrong = check(chunk, ~seed, side.bytes);
      if (wrong >= 0 && side.wrong < 0) side.wrong = wrong;
      side.bytes += chunk.length;
    });
    socket.on('end', () => side.ends++);
    socket.on('error', (error) => side.errors.push(error));
    socket.on('close', () => {
      side.closes++;
      clearInterval(timer);
      // One more turn for a second 'close', if there were one.
      setImmediate(() => {
        if (done) return;
        done = true;
        resolve({ seed, client: side, server, hung: false });
      });
    });
  });
}

/**
 * The server learns of a flow's end after the client does. `mayNotHear`: what would tell it has fallen silent, so that it need not ever;
 * nothing is concluded then.
 */
export async function serverHears(side, mayNotHear, describe) {
  const closed = () => (side()?.closes ?? 1) > 0;
  if (mayNotHear) await awhile(closed, WORD_TICKS, TICK);
  else await until(closed, 'the server has closed the flow', describe);
}

/** What is wrong with a side, in words; undefined if nothing is. The end of a stream that is whole has to be told, once. */
export function misdeed(side, name) {
  if (side.wrong >= 0) return `${name}: byte ${side.wrong} is not the one that was sent`;
  if (side.bytes > side.expected) return `${name}: ${side.bytes} bytes of ${side.expected}`;
  if (side.connections > 1) return `${name}: ${side.connections} connections for one flow`;
  if (side.ends > 1 || side.closes > 1 || side.errors.length > 1)
    return `${name}: ends ${side.ends}, closes ${side.closes}, errors ${side.errors.length}`;
  if (side.ends === 1 && side.errors.length === 0 && side.bytes < side.expected)
    return `${name}: a silent end after ${side.bytes} bytes of ${side.expected}`;
  return undefined;
}

export function complete(side) {
  const { connections, ends, closes, errors, bytes, expected } = side;
  return connections === 1 && ends === 1 && closes === 1 && errors.length === 0 && bytes === expected;
}
