/**
 * Redis with RepSYN: two connects to an unmodified redis-server, commands only on the one that was established first.
 *
 *   node examples/redis.js [redis://127.0.0.1:6379]
 */
const repnet = require('repnet');
const { Redis, AbstractConnector } = require('ioredis');

/** What the one line is in plain ioredis: net.createConnection becomes repnet.createConnection. */
class RepnetConnector extends AbstractConnector {
  constructor(options) {
    super(options.disconnectTimeout);
    this.options = options;
  }

  async connect() {
    const { host, port, family } = this.options;
    this.connecting = true;
    // 'plain': the server knows nothing of this, so there is nothing to discover.
    this.stream = repnet.createConnection({ host, port, family, replicate: 'syn', peer: 'plain' });
    this.stream.once('error', (error) => (this.firstError = error));
    return this.stream;
  }
}

async function main() {
  const redis = new Redis(process.argv[2] ?? 'redis://127.0.0.1:6379', {
    Connector: RepnetConnector,
    maxRetriesPerRequest: 1,
  });
  redis.on('error', (error) => console.error(error.message));
  await redis.set('repnet:example', 'kept by the faster of two connections', 'EX', 60);
  console.log(await redis.get('repnet:example'));
  console.log(JSON.stringify(repnet.stats()));
  await redis.quit();
}

main().catch((error) => {
  console.error(error.message);
  process.exitCode = 1;
});
