/** The server process of the benchmark: per transport one echo of fixed-size messages and one sink, on free ports. */
import net from 'node:net';
import repnet from 'repnet';
import { serveOnWire } from './wire.mjs';

export const MESSAGE_BYTES = 1024;

/** Answers every MESSAGE_BYTES with as many; ends the connection after the first answer unless kept alive. */
function echo(keepAlive) {
  return (socket) => {
    let received = 0;
    socket.on('data', (chunk) => {
      received += chunk.length;
      for (; received >= MESSAGE_BYTES; received -= MESSAGE_BYTES) {
        if (keepAlive) socket.write(ANSWER);
        else socket.end(ANSWER);
      }
    });
    socket.on('error', () => socket.destroy());
  };
}

/** Counts bytes to the end and answers with their number. */
function sink(socket) {
  let received = 0;
  socket.on('data', (chunk) => (received += chunk.length));
  socket.on('end', () => socket.end(String(received)));
  socket.on('error', () => socket.destroy());
}

/** The same of a flow over two sockets of net. */
function echoOnWire(keepAlive) {
  return (flow) => {
    let received = 0;
    flow.ondata = (chunk) => {
      received += chunk.length;
      for (; received >= MESSAGE_BYTES; received -= MESSAGE_BYTES) {
        if (keepAlive) flow.write(ANSWER);
        else flow.end(ANSWER);
      }
    };
  };
}

const ANSWER = Buffer.alloc(MESSAGE_BYTES, 'a');

const SERVICES = {
  once: (module) => module.createServer({ noDelay: true }, echo(false)),
  /** The second port of two bare connections. */
  twin: (module) => module.createServer({ noDelay: true }, echo(false)),
  kept: (module) => module.createServer({ noDelay: true }, echo(true)),
  /** The second port of two bare connections. */
  keptTwin: (module) => module.createServer({ noDelay: true }, echo(true)),
  sink: (module) => module.createServer({ noDelay: true, allowHalfOpen: true }, sink),
};

if (process.send !== undefined) {
  const ports = {};
  const listen = (server) =>
    new Promise((resolve, reject) =>
      server.once('error', reject).listen(0, '127.0.0.1', () => resolve(server.address().port)),
    );
  // `plain`: this library at a server whose clients do not replicate.
  for (const [name, module] of Object.entries({ net, repnet, plain: repnet })) {
    ports[name] = {};
    for (const [service, create] of Object.entries(SERVICES)) {
      ports[name][service] = await listen(create(module));
    }
  }
  ports.wire = {};
  for (const [service, keepAlive] of [
    ['once', false],
    ['kept', true],
  ])
    ports.wire[service] = await Promise.all(serveOnWire(echoOnWire(keepAlive)).map(listen));
  const answers = {
    memory: () => {
      globalThis.gc();
      return process.memoryUsage();
    },
    cpu: () => process.cpuUsage(),
  };
  process.on('message', (question) => process.send(answers[question]()));
  process.on('disconnect', () => process.exit());
  process.send({ ports });
}
