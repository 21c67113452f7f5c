/** Misspelt options: an error that says which was meant, at the earliest place that knows of it; other libraries' options are not. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { Agent, createServer as createHttpServer, HttpsAgent } from '../dist/adapters/http.js';
import { connect as connectTls, createServer as createTlsServer } from '../dist/adapters/tls.js';
import repnet from '../dist/index.js';
import { meantFor } from '../dist/options.js';

const MISSPELT = {
  treshold: 'threshold',
  treshhold: 'threshold',
  replicat: 'replicate',
  replication: 'replicate',
  replicPort: 'replicaPort',
  copydelay: 'copyDelay',
  copy_delay: 'copyDelay',
  pairTimout: 'pairTimeout',
  Peer: 'peer',
  losser: 'loser',
  lul: 'lull',
  adresses: 'addresses',
};
const refusing = (name) => ({
  code: 'ERR_REPNET_OPTION',
  message: `${name} is not an option; did you mean ${MISSPELT[name]}?`,
});

/** Who takes options. */
const TAKERS = {
  connect: (options) => repnet.connect({ port: 1, host: '127.0.0.1', ...options }),
  'connect of a path': (options) => repnet.connect({ path: '/nowhere', ...options }),
  'connect, replication off': (options) => repnet.connect({ port: 1, replicate: false, ...options }),
  'a socket': (options) => new repnet.Socket(options).connect(1, '127.0.0.1'),
  'a socket that connects': (options) =>
    new repnet.Socket().connect({ port: 1, host: '127.0.0.1', ...options }),
  createServer: (options) => repnet.createServer(options),
  'an http agent': (options) => new Agent(options),
  'an https agent': (options) => new HttpsAgent(options),
  'an http server': (options) => createHttpServer(options),
  'tls.connect': (options) => connectTls({ port: 1, host: '127.0.0.1', ...options }),
  'a tls server': (options) => createTlsServer(options),
};
for (const [taker, take] of Object.entries(TAKERS))
  test(`${taker} refuses a misspelt option`, () => {
    for (const name of Object.keys(MISSPELT)) assert.throws(() => take({ [name]: 1 }), refusing(name), name);
  });

for (const [taker, take] of Object.entries(TAKERS))
  test(`${taker} refuses to pair by token, which there is no more, and says what to do`, () =>
    assert.throws(() => take({ pairing: 'token' }), {
      code: 'ERR_REPNET_OPTION',
      message: /^pairing: 'token' is not available any more: .*Remove the option; .* use replicate: 'syn'$/,
    }));

test('an assignment to what the defaults do not have says what they have', () => {
  assert.throws(() => Object.assign(repnet.defaults, { treshold: 1 }), refusing('treshold'));
  assert.throws(() => {
    repnet.defaults.budget.byte = 1;
  }, /byte is not an option; did you mean bytes\?/);
  assert.throws(
    () => {
      repnet.defaults.colour = 1;
    },
    { code: 'ERR_REPNET_OPTION', message: /^There is no colour here; there are enabled, replicate, / },
  );
});

test("options of Node's net, tls and http, and an address as servers tell theirs, are none of ours misspelt", () => {
  const ours = ['replicate', 'replicaPort', 'threshold', 'lull', 'copyDelay', 'pairTimeout', 'loser', 'peer'];
  const theirs =
    `port host path localAddress localPort family hints lookup noDelay keepAlive keepAliveInitialDelay timeout signal
    autoSelectFamily autoSelectFamilyAttemptTimeout blockList fd handle readable writable allowHalfOpen onread pauseOnConnect
    highWaterMark readableHighWaterMark backlog exclusive ipv6Only readableAll writableAll reusePort typeOfService
    ca cert key pfx passphrase ciphers servername session rejectUnauthorized requestCert ALPNProtocols checkServerIdentity
    secureContext socket pskCallback minDHSize method headers agent auth protocol hostname defaultPort createConnection
    maxSockets maxFreeSockets maxTotalSockets keepAliveMsecs scheduling proxyEnv insecureHTTPParser joinDuplicateHeaders
    requestTimeout headersTimeout connectionsCheckingInterval uniqueHeaders shouldUpgradeCallback perMessageDeflate user
    password database query params setHost _defaultAgent encoding nativeProtocols localFamily reuse retries policy`
      .trim()
      .split(/\s+/);
  for (const name of theirs) assert.equal(meantFor(name, ours), undefined, name);
});

test('a socket connects to the address that a server tells', async (t) => {
  const server = repnet.createServer((socket) => socket.on('error', () => {}).end());
  server.listen(0, '127.0.0.1');
  t.after(() => server.close());
  await once(server, 'listening');
  const socket = repnet.connect({ ...server.address(), host: '127.0.0.1', family: 4 });
  t.after(() => socket.destroy());
  await once(socket, 'connect');
});
