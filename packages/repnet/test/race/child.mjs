/**
 * child.mjs ROWS LIMIT: in network and mount namespaces of its own, connects to each row's addresses by
 * repnet and by the other clients that are installed; prints one line of JSON per row. A client that has
 * neither connected nor failed after LIMIT ms has no time.
 */
import { execFile, execFileSync, fork, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { forgetPeers } from '../../dist/client/peers.js';
import repnet from '../../dist/index.js';
import { addressesOf, addressOf } from './rows.mjs';

const rows = process.argv[2].split(',');
const limit = Number(process.argv[3]);
const PORT = 7_000;
const NAME = 'a.name.test';

const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const sh = (program, ...args) => execFileSync(program, args, { stdio: ['ignore', 'ignore', 'inherit'] });

function prepareNetwork() {
  sh('ip', 'link', 'set', 'dev', 'lo', 'up');
  // An address that does not answer is given up after one retransmission of the SYN: three seconds.
  writeFileSync('/proc/sys/net/ipv4/tcp_syn_retries', '1');
  const batch = [];
  for (const family of [4, 6])
    for (const kind of 'ASRBX')
      for (let n = 0; n < 4; n++)
        batch.push(`addr add ${addressOf(family, kind, n)}/${family === 4 ? 32 : 128} dev lo`);
  execFileSync('ip', ['-batch', '-'], { input: batch.join('\n') });
  const syn = 'tcp flags & (syn | ack) == syn';
  execFileSync('nft', ['-f', '-'], {
    input: `table inet race {
  set seen4 { type ipv4_addr . inet_service ; flags dynamic,timeout ; timeout 5s ; }
  set seen6 { type ipv6_addr . inet_service ; flags dynamic,timeout ; timeout 5s ; }
  chain input {
    type filter hook input priority 0 ;
    ip daddr 198.18.3.0/24 drop
    ip6 daddr 2001:db8:0:3::/64 drop
    ip daddr 198.18.1.0/24 ${syn} ip daddr . tcp sport != @seen4 add @seen4 { ip daddr . tcp sport } drop
    ip6 daddr 2001:db8:0:1::/64 ${syn} ip6 daddr . tcp sport != @seen6 add @seen6 { ip6 daddr . tcp sport } drop
  }
}
`,
  });
}

function nodeClient(api, options) {
  return (addresses) => {
    forgetPeers();
    const all = addresses.map((address) => ({ address, family: net.isIP(address) }));
    const lookup = (_, how, done) =>
      setImmediate(() => (how.all ? done(null, all) : done(null, all[0].address, all[0].family)));
    const begun = performance.now();
    const socket = api.connect({ host: NAME, port: PORT, lookup, ...options });
    let connects = 0;
    return new Promise((resolve) => {
      const over = (result) => {
        clearTimeout(timer);
        // What a loser might still say is to be seen, too.
        setTimeout(() => {
          socket.destroy();
          resolve(result && { ...result, connects });
        }, 30);
      };
      const timer = setTimeout(over, limit);
      socket.on('connect', () => {
        connects++;
        over({ ms: performance.now() - begun });
        socket.write('x');
      });
      socket.on('error', (error) => {
        if (connects > 0) return;
        const causes = (error.errors ?? [error]).map(({ code, address }) => `${address} ${code}`);
        over({ ms: performance.now() - begun, error: error.code ?? error.name, causes });
      });
    });
  };
}

const run = (program, ...args) =>
  new Promise((resolve) => {
    execFile(program, args, { timeout: limit + 5_000 }, (_error, stdout) => resolve(stdout.trim()));
  });

function parsed(text) {
  const [ms, failed] = text.split(' ');
  if (text === '' || ms === 'none') return undefined;
  return failed === undefined ? { ms: Number(ms) } : { ms: Number(ms), error: 'failed' };
}

function otherClients(folder) {
  const others = { net: nodeClient(net, {}) };
  const has = (program, ...args) => spawnSync(program, args).status === 0;
  if (has('curl', '--version'))
    others.curl = async (addresses) => {
      const resolve = `${NAME}:${PORT}:${addresses.map((a) => (net.isIPv6(a) ? `[${a}]` : a)).join(',')}`;
      const format = '%{time_connect} %{time_total}';
      const most = String(limit / 1000);
      const url = `http://${NAME}:${PORT}/`;
      const text = await run('curl', '-s', '-m', most, '--resolve', resolve, '-w', format, url);
      const [connect, total] = text.split(' ').map((seconds) => Number(seconds) * 1000);
      if (connect > 0) return { ms: connect };
      return total < limit - 100 ? { ms: total, error: 'failed' } : undefined;
    };
  if (has('python3', '-c', 'import sys; sys.exit(sys.version_info < (3, 11))'))
    others.Python = async (addresses) =>
      parsed(await run('python3', here('client.py'), String(PORT), String(limit), ...addresses));
  const client = join(folder, 'client');
  if (has('go', 'build', '-o', client, here('client.go')))
    others.Go = async (addresses) => {
      // Bound over /etc/hosts in this namespace.
      writeFileSync(join(folder, 'hosts'), addresses.map((address) => `${address} ${NAME}\n`).join(''));
      return parsed(await run(client, NAME, String(PORT), String(limit)));
    };
  return others;
}

const folder = mkdtempSync(join(tmpdir(), 'repnet-race-'));
try {
  prepareNetwork();
  writeFileSync(join(folder, 'hosts'), '');
  const others = otherClients(folder);
  sh('mount', '--bind', join(folder, 'hosts'), '/etc/hosts');
  const server = fork(here('server.mjs'), [String(PORT)]);
  const answer = () => new Promise((resolve) => server.once('message', resolve));
  await answer();
  const seen = async () => {
    server.send('seen');
    return answer();
  };
  const ours = {
    syn: nodeClient(repnet, { replicate: 'syn' }),
    flow: nodeClient(repnet, { replicate: 'flow' }),
  };
  for (const row of rows) {
    const addresses = addressesOf(row);
    const names = Object.keys(others);
    const results = await Promise.all(names.map((name) => others[name](addresses)));
    const times = Object.fromEntries(names.map((name, n) => [name, results[n] ?? null]));
    await seen();
    for (const [name, client] of Object.entries(ours)) {
      const result = (await client(addresses)) ?? null;
      times[name] = result && { ...result, seen: await seen() };
    }
    process.stdout.write(`${JSON.stringify({ row, times })}\n`);
  }
  server.kill();
} finally {
  sh('umount', '/etc/hosts');
  rmSync(folder, { recursive: true });
}
process.exit();
