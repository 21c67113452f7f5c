/** What the tests share: a server, raw connections to it, and waiting for conditions rather than for time. */
import { once } from 'node:events';
import net from 'node:net';
import repnet from '../../dist/index.js';
import { newHandle } from '../../dist/net-internals.js';
import { dataHeader, encodeHello, HelloFlag, Kind } from '../../dist/wire.js';
import { echoing } from './observe.mjs';
import { refusingPort } from './refusing-port.mjs';

export const { defaults } = repnet;

/** A RepNet server that counts connections and echoes; closes with the test. */
export async function echoServer(t, options = {}, host = '127.0.0.1') {
  const sockets = [];
  const server = repnet.createServer(options, (socket) => {
    sockets.push(socket);
    socket.on('error', () => {});
    socket.on('data', (chunk) => socket.write(chunk));
  });
  await new Promise((resolve) => server.listen(0, host, resolve));
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { server, sockets, port: server.address().port };
}

/**
 * A server of `api` (net or repnet), by default of echoes: `accepted` counts its connections, `sockets` are the open ones. Nobody
 * listens on the successor of a port that it chooses, unless it is repnet's.
 */
export async function countingServer(t, api, chosen = 0, serve = echoing) {
  const port = chosen === 0 && api === net ? refusingPort(t) : chosen;
  const seen = { accepted: 0, sockets: new Set() };
  const server = api.createServer((socket) => {
    seen.accepted++;
    seen.sockets.add(socket);
    serve(socket.on('error', () => {}).on('close', () => seen.sockets.delete(socket)));
  });
  await new Promise((resolve) => server.listen(port, '127.0.0.1', resolve));
  const close = () => {
    for (const socket of seen.sockets) socket.destroy();
    return new Promise((resolve) => server.close(resolve));
  };
  t.after(close);
  return Object.assign(seen, { server, port: server.address().port, close });
}

/** A plain connection whose received bytes are kept. From `localPort`: of an address of our own, unless another is given. */
export async function raw(t, port, options = {}) {
  const from = options.localPort === undefined ? {} : { localAddress: OWN_ADDRESS };
  const socket = net.connect({ host: '127.0.0.1', port, ...from, ...options });
  const seen = { socket, bytes: Buffer.alloc(0), ended: false, error: undefined, closed: false };
  socket.on('data', (chunk) => {
    seen.bytes = Buffer.concat([seen.bytes, chunk]);
  });
  socket.on('end', () => {
    seen.ended = true;
  });
  socket.on('error', (error) => {
    seen.error = error;
  });
  socket.on('close', () => {
    seen.closed = true;
  });
  await new Promise((resolve) => socket.once('connect', resolve).once('error', resolve));
  // A socket that was reset does not know them any more, and is not closed yet.
  const { localAddress, localPort } = socket;
  Object.assign(seen, { localAddress, localPort });
  t.after(() => socket.destroy());
  return seen;
}

/** A replica's hello for the raw connection `connection` to the server whose first port is `port`. */
export const hello = (connection, port, fields = {}) =>
  encodeHello({
    kind: Kind.replica,
    flags: HelloFlag.early,
    threshold: 100_000,
    token: Buffer.alloc(16, 7),
    sourceAddress: connection.localAddress ?? connection.socket.localAddress,
    sourcePort: connection.localPort ?? connection.socket.localPort,
    targetAddress: '127.0.0.1',
    targetPort: port,
    patience: 100,
    ...fields,
  });

/** The next message of a child process; fails if it ends before it has said something. */
export async function messageOf(child) {
  const ended = new AbortController();
  const exit = () => ended.abort(new Error('the child process has ended'));
  child.once('exit', exit);
  try {
    return (await once(child, 'message', { signal: ended.signal }))[0];
  } finally {
    child.off('exit', exit);
  }
}

/** A data record. */
export const data = (offset, text) => Buffer.concat([dataHeader(offset, text.length), Buffer.from(text)]);

/** Milliseconds after which a test gives up waiting: longer than any machine at work needs. */
export const PATIENCE = 600_000;

// As they are before a test moves the clock: what is waited for comes in real time.
const { setTimeout: later, setInterval: every, clearInterval: stop } = globalThis;

/**
 * Waits until `condition`, which may be a promise's, holds; gives up naming it, with what this process has open, what its flows have done
 * and `state()`.
 */
export async function until(condition, what = String(condition), state = () => undefined) {
  const end = Date.now() + PATIENCE;
  while (!(await condition())) {
    if (Date.now() > end)
      throw new Error(
        [
          `not within ${PATIENCE} ms: ${what}`,
          `open: ${process.getActiveResourcesInfo()}`,
          JSON.stringify(repnet.stats()),
          JSON.stringify(await state()),
        ].join('\n'),
      );
    await new Promise((resolve) => later(resolve, 2));
  }
}

/** Waits until `condition` holds, but for so many ticks only: it need not hold ever, and nothing may be concluded if it does not. */
export async function awhile(condition, count = 100, milliseconds = 50) {
  for (; count > 0 && !(await condition()); count--) await ticks(1, milliseconds);
}

/** Waits until `value()` has been the same for so many ticks. */
export async function standstill(value, count = 10, milliseconds = 50) {
  for (let last = value(), same = 0; same < count; same++) {
    await ticks(1, milliseconds);
    const now = value();
    if (now !== last) same = -1;
    last = now;
  }
}

/**
 * The time in which a server that has just begun lets no flow start with its second connection: five of its ticks, each a quarter of its
 * wait. Counted as it counts, since ticks come late in a process that has to wait for its turn.
 */
export function grown(waitTimeout = defaults.waitTimeout) {
  return ticks(7, waitTimeout / 4);
}

/** So many ticks of a timer. A process that stands still sees one. */
export function ticks(count, milliseconds) {
  return new Promise((resolve) => {
    const timer = every(() => {
      if (--count > 0) return;
      stop(timer);
      resolve();
    }, milliseconds);
  });
}

/** Lets everything under way on loopback arrive: several turns of the event loop, twice over. */
export async function settle(turns = 30) {
  for (let i = 0; i < turns; i++) await new Promise((resolve) => setImmediate(resolve));
  await ticks(1, 10);
  for (let i = 0; i < turns; i++) await new Promise((resolve) => setImmediate(resolve));
}

/** Connects by RepNet and sends one message; resolves with the echo. */
export async function echo(socket, text) {
  const length = Buffer.byteLength(text);
  const reply = [];
  let n = 0;
  const done = new Promise((resolve, reject) => {
    const onData = (chunk) => {
      reply.push(chunk);
      n += chunk.length;
      if (n >= length) {
        socket.off('data', onData);
        resolve(Buffer.concat(reply).toString('latin1'));
      }
    };
    socket.on('data', onData);
    socket.once('error', reject);
  });
  socket.write(text);
  return done;
}

/**
 * Loopback addresses that no other test process uses, 0 to 191: what is bound to one is in nobody's way, and the ports that are
 * counted up there in nobody's use.
 */
export const ownAddress = (n) => `127.${64 + n}.${(process.pid >> 8) & 255}.${process.pid & 255}`;
export const OWN_ADDRESS = ownAddress(0);

let ports = 8_000 + Math.floor(Math.random() * 1_500);
/**
 * A port of `OWN_ADDRESS` outside the ephemeral range. One on which a program of this machine listens, at every address, is passed over:
 * who connects from it could not be connected on to by a relay.
 */
export function ownPort() {
  for (;;) {
    const port = ports++;
    const handle = newHandle();
    const isFree = handle.bind(OWN_ADDRESS, port) === 0 && handle.listen(1) === 0;
    handle.close();
    if (isFree) return port;
  }
}
