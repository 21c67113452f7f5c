// A worker of a cluster listens; the primary tells what it heard of that, and what a client in the worker got.
const cluster = require('node:cluster');
const { once } = require('node:events');
const [, , policy, name, options] = process.argv;
cluster.schedulingPolicy = policy === 'none' ? cluster.SCHED_NONE : cluster.SCHED_RR;

if (cluster.isPrimary) {
  const heard = [];
  cluster.on('listening', (_worker, { port }) => heard.push(port));
  const worker = cluster.fork();
  // Messages of a worker come in order: what it was to say of listening has been said.
  worker.once('message', ({ port, got, replica }) => {
    const first = heard.map((each) => (each === port ? 'the first port' : each));
    console.log(JSON.stringify({ first, got, replica }));
    worker.kill();
    process.exit();
  });
  worker.once('exit', () => process.exit(1));
} else {
  const api = name === 'net' ? require('node:net') : require('../../dist/index.js');
  (async () => {
    const server = api.createServer((socket) => socket.on('error', () => {}).end('hello'));
    server.listen({ host: '127.0.0.1', ...JSON.parse(options) });
    await once(server, 'listening');
    const { port } = server.address();
    const socket = api.connect({ port, host: '127.0.0.1', peer: 'repnet' });
    let got = '';
    for await (const chunk of socket) got += chunk;
    // The second port begins to listen when the primary has answered.
    while (name !== 'net' && server.replicaAddress() === null) await new Promise(setImmediate);
    process.send({ port, got, replica: name !== 'net' && server.replicaAddress().port - port });
  })();
}
