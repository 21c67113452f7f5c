// For each message { role, options, steps, port }: does the steps to a socket or server and then nothing more. Answers
// { outcome: 'exits' } if nothing keeps the process then, { outcome: 'stays' } if it is still there after a while.
import { once } from 'node:events';
import { forgetPeers } from '../../dist/client/peers.js';
import repnet from '../../dist/index.js';
import { ticks, until } from './support.mjs';

/**
 * So many ticks of so many milliseconds, unless the options say otherwise (`stays`): of a process that stands still one passes, and what
 * is over is closed by the next.
 */
const STAYS = [10, 25];
const defaults = { ...repnet.defaults };

/** Called when nothing keeps the process: it would end, but for what is begun then. */
let ends;
process.on('beforeExit', () => ends());

/** What comes of the process when `steps` are done. */
function outcome(steps, [count, milliseconds]) {
  return new Promise((resolve) => {
    let timer;
    const tell = (what) => {
      clearInterval(timer);
      process.channel.ref();
      resolve(what);
    };
    ends = () => tell('ends before all its steps are done');
    steps.then(
      () => {
        ends = () => tell('exits');
        // Keeps no process: it fires if something else does.
        let left = count;
        timer = setInterval(() => --left === 0 && tell('stays'), milliseconds).unref();
      },
      (error) => tell(error.stack),
    );
  });
}

async function run(target, actions, steps) {
  for (const step of steps) await (actions[step] ?? (() => target[step]()))();
}

function client(options, port, steps, undo) {
  const socket = new repnet.Socket();
  undo.push(() => socket.destroy());
  const actions = {
    connect: () => void socket.connect({ host: '127.0.0.1', port, ...options }),
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
  };
  return run(socket, actions, steps);
}

function server(options, steps, undo) {
  const listening = repnet.createServer(options);
  let accepted;
  undo.push(() => listening.close());
  listening.on('connection', (socket) => {
    undo.push(() => socket.destroy());
    accepted = socket.on('error', () => {});
    socket.on('data', (chunk) => socket.write(chunk));
  });
  const actions = {
    listen: async () => {
      listening.listen(0, '127.0.0.1');
      await once(listening, 'listening');
      process.send({ port: listening.address().port });
    },
    accept: async () => {
      await once(listening, 'connection');
      await ticks(5, 20);
    },
    /** A flow has come and gone, and the parent is told. */
    pass: async () => {
      await once(listening, 'connection');
      await once(accepted, 'close');
      process.send({ passed: true });
    },
    /** The next connection is all there is. */
    endOfNext: async () => {
      await once(listening, 'connection');
      listening.unref();
      await once(accepted, 'end');
    },
    unrefAccepted: () => accepted.unref(),
    refAccepted: () => accepted.ref(),
    silence: () => once(process, 'message'),
    disconnect: () => process.channel.unref(),
  };
  return run(listening, actions, steps);
}

process.on('message', async ({ role, options: all, steps, port }) => {
  if (role === undefined) return;
  const { defaults: settings, stays = STAYS, ...options } = all;
  forgetPeers();
  Object.assign(repnet.defaults, defaults, settings);
  const undo = [];
  if (!steps.includes('disconnect')) process.channel.unref();
  const doing = role === 'client' ? client(options, port, steps, undo) : server(options, steps, undo);
  const what = await outcome(doing, stays);
  for (const each of undo) each();
  process.send({ outcome: what });
});
