// For each part of net that it is told of, as JSON: loads repnet without it, uses everything that is offered, and prints what came of
// it as a line of JSON.
const { once } = require('node:events');
const net = require('node:net');
const { takeAway } = require('./without-part.cjs');

// Every copy that is loaded listens.
process.setMaxListeners(0);
let warnings = [];
process.on('warning', ({ code, name }) => warnings.push(`${name} ${code}`));
let repnet;
let http;

/** As the first program to load it. */
function load() {
  for (const name of Object.keys(require.cache)) if (name.includes('/dist/')) delete require.cache[name];
  repnet = require('../../dist/index.js');
  http = require('../../dist/adapters/http.js');
}

const HOST = '127.0.0.1';

async function listen(server) {
  server.listen(0, HOST);
  await once(server, 'listening');
  return server.address().port;
}

async function echo(port, options) {
  const socket = repnet.connect({ port, host: HOST, ...options });
  socket.setNoDelay(true).setKeepAlive(true, 1_000);
  socket.end('some bytes');
  let text = '';
  for await (const chunk of socket) text += chunk;
  return [text, socket instanceof net.Socket, repnet.info(socket).mode];
}

function bad(connect) {
  try {
    connect();
    return 'nothing';
  } catch ({ code }) {
    return code;
  }
}

async function use() {
  const server = repnet.createServer((socket) => socket.pipe(socket));
  const port = await listen(server);
  const seen = { supported: repnet.supported, replica: server.replicaAddress() };
  seen.echoes = [];
  for (const replicate of ['flow', 'syn', false])
    seen.echoes.push(await echo(port, { replicate, peer: 'repnet' }));
  seen.option = bad(() => repnet.connect({ port, host: HOST, threshold: -1 }));
  const web = http.createServer({}, (_request, response) => response.end('page'));
  const agent = new http.Agent({ replicate: 'flow' });
  const url = `http://${HOST}:${await listen(web)}`;
  const [response] = await once(require('node:http').get(url, { agent }), 'response');
  seen.page = (await response.toArray()).join('');
  seen.stats = [repnet.stats().flowsPlain, repnet.stats().flowsFlow, repnet.stats().flowsSyn];
  agent.destroy();
  for (const each of [server, web]) await new Promise((resolve) => each.close(resolve));
  return seen;
}

(async () => {
  for (const part of JSON.parse(process.argv[2])) {
    warnings = [];
    const giveBack = takeAway(part);
    load();
    const seen = await use();
    giveBack();
    console.log(JSON.stringify({ ...seen, warnings }));
  }
  process.exit();
})();
