/**
 * An HTTP service and its client. Change the one line to compare: 'flow' (RepFlow), 'syn' (RepSYN), false (plain TCP).
 *
 *   node examples/http-service.js
 */
const repnet = require('repnet');
const { Agent, createServer } = require('repnet/http');
const http = require('node:http');

repnet.defaults.replicate = process.argv[2] === undefined ? 'flow' : JSON.parse(process.argv[2]);

async function main() {
  const server = createServer({}, (request, response) => {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ hello: request.url }));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();

  const agent = new Agent({ keepAlive: true });
  for (const path of ['/first', '/second', '/third'])
    console.log(await get({ host: '127.0.0.1', port, path, agent }));
  agent.destroy();
  await new Promise((resolve) => server.close(resolve));
  console.log(JSON.stringify({ replicate: repnet.defaults.replicate, stats: repnet.stats() }));
}

function get(options) {
  return new Promise((resolve, reject) => {
    http
      .get(options, (response) => {
        let body = '';
        response
          .setEncoding('utf8')
          .on('data', (chunk) => (body += chunk))
          .on('end', () => resolve(body))
          .on('error', reject);
      })
      .on('error', reject);
  });
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
