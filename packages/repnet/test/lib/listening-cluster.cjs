// POLICY API HOST OPTIONS: a worker of a cluster listens; the primary tells what it heard of that, what a client in the worker got, and
// how often net's channels told of a server in the worker.
const cluster = require('node:cluster');
const { subscribe } = require('node:diagnostics_channel');
const { once } = require('node:events');
const net = require('node:net');
const [, , policy, name, host, options] = process.argv;
cluster.schedulingPolicy = policy === 'none' ? cluster.SCHED_NONE : cluster.SCHED_RR;

if (cluster.isPrimary) {
  const heard = [];
  cluster.on('listening', (_worker, { port }) => heard.push(port));
  const worker = cluster.fork();
  // Messages of a worker come in order: what it was to say of listening has been said.
  worker.once('message', ({ port, later, got, replica, told }) => {
    const first = heard
      .filter((each) => each !== later)
      .map((each) => (each === port ? 'the first port' : each));
    console.log(JSON.stringify({ first, got, replica, told }));
    worker.kill();
    process.exit();
  });
  worker.once('exit', () => process.exit(1));
} else {
  const api = name === 'net' ? net : require('../../dist/index.js');
  const told = {};
  for (const name of ['asyncStart', 'asyncEnd', 'error'])
    subscribe(`tracing:net.server.listen:${name}`, ({ server }) => {
      told[name] = [...(told[name] ?? []), server.constructor.name];
    });
  (async () => {
    const server = api.createServer((socket) => socket.on('error', () => {}).end('hello'));
    server.listen({ host, ...JSON.parse(options) });
    await once(server, 'listening');
    const { port } = server.address();
    const socket = api.connect({ port, host, peer: 'repnet' });
    let got = '';
    for await (const chunk of socket) got += chunk;
    // The primary has answered for the second port when it has answered for one that was asked for later.
    const later = net.createServer().listen(0, host);
    await once(later, 'listening');
    const replica = name !== 'net' && server.replicaAddress()?.port - port;
    process.send({ port, later: later.address().port, got, replica, told });
  })();
}
