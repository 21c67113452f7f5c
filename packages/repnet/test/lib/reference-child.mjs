// reference-child.mjs ROLE OPTIONS STEPS [PORT]: does STEPS to a socket or server and then nothing more. Prints 'exits' if the
// process ends because nothing keeps it, 'stays' if it is still there after a while.
import { once } from 'node:events';
import repnet from '../../dist/index.js';
import { ticks, until } from './support.mjs';

/**
 * So many ticks of so many milliseconds, unless OPTIONS say otherwise (`stays`): of a process that stands still one passes, and what is
 * over is closed by the next.
 */
const STAYS = [10, 25];
const STAYED = 42;
const [role, optionsText, stepsText, port] = process.argv.slice(2);
const { defaults: settings, stays = STAYS, ...options } = JSON.parse(optionsText);
const steps = JSON.parse(stepsText);
Object.assign(repnet.defaults, settings);
process.once('exit', (code) =>
  // One that ends before all its steps are done has an exit code that the event does not tell.
  console.log({ 0: 'exits', [STAYED]: 'stays' }[process.exitCode ?? code] ?? 'fails'),
);

async function run(target, actions) {
  for (const step of steps) await (actions[step] ?? (() => target[step]()))();
  // Nothing that keeps the process: it fires if something else does.
  let [ticks, milliseconds] = stays;
  setInterval(() => --ticks === 0 && process.exit(STAYED), milliseconds).unref();
}

if (role === 'client') {
  const socket = new repnet.Socket();
  await run(socket, {
    connect: () => void socket.connect({ host: '127.0.0.1', port: Number(port), ...options }),
    connected: () => once(socket, 'connect'),
    exchange: async () => {
      socket.write('x');
      await once(socket, 'data');
    },
    closed: () => once(socket, 'close'),
    paired: () => until(() => repnet.info(socket).paired),
    /** More than the system takes of a connection that is not read. */
    sendMuch: () => once(socket.resume().end(Buffer.alloc(32_000_000)), 'close'),
    ended: () => once(socket.resume(), 'end'),
    // The second connection has had time to come, or the hedge to be made.
    wait: () => ticks(5, 20),
  });
} else {
  const server = repnet.createServer(options);
  let accepted;
  server.on('connection', (socket) => {
    accepted = socket.on('error', () => {});
    socket.on('data', (chunk) => socket.write(chunk));
  });
  await run(server, {
    listen: async () => {
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      // Whoever is not interested has hung up.
      process.send?.(server.address().port, () => {});
    },
    accept: async () => {
      await once(server, 'connection');
      await ticks(5, 20);
    },
    /** A flow has come and gone, and the parent is told. */
    pass: async () => {
      await once(server, 'connection');
      await once(accepted, 'close');
      process.send('passed');
    },
    /** The next connection is all there is. */
    endOfNext: async () => {
      await once(server, 'connection');
      server.unref();
      await once(accepted, 'end');
    },
    unrefAccepted: () => accepted.unref(),
    refAccepted: () => accepted.ref(),
    silence: () => once(process, 'message'),
    disconnect: () => process.disconnect(),
  });
}
