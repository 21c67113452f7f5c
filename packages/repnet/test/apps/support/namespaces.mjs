/**
 * Two hosts in network namespaces, joined by two links, a and b. Everything is made with names of this process and
 * removed again; nothing outside the namespaces is touched.
 *
 *   client 10.77.0.1 ==a== 10.77.0.2 server      which link a connection takes: `pin`, or by hash
 *                    ==b==
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { missing } from '../../lib/skips.mjs';
import { root } from './process.mjs';

export const CLIENT = '10.77.0.1';
export const SERVER = '10.77.0.2';
const LINKS = { a: 1, b: 2 };
const device = (link) => `path-${link}`;

const run = (program, ...args) =>
  execFileSync(program, args, { stdio: ['ignore', 'pipe', 'pipe'], encoding: 'utf8' });

/** Why namespaces cannot be used here, or false where they can. */
export function skipNamespaces() {
  const name = `repnet-probe-${process.pid}`;
  try {
    run('ip', 'netns', 'add', name);
  } catch (error) {
    return error.code === 'ENOENT'
      ? missing('ip is not installed', 'apt-get install iproute2')
      : missing(`network namespaces are not permitted: ${String(error.stderr ?? error.message).trim()}`);
  }
  try {
    run(
      'ip',
      'netns',
      'exec',
      name,
      'tc',
      'qdisc',
      'add',
      'dev',
      'lo',
      'root',
      'tbf',
      'rate',
      '1mbit',
      'burst',
      '2kb',
      'limit',
      '3kb',
    );
    return false;
  } catch (error) {
    return missing(`links cannot be shaped: ${String(error.stderr ?? error.message).trim()}`);
  } finally {
    run('ip', 'netns', 'del', name);
  }
}

export class TwoPaths {
  #client = `repnet-client-${process.pid}`;
  #server = `repnet-server-${process.pid}`;

  /** Both links at `rate` (tc notation) with a queue of `queueBytes` at each end. Removed when the test ends. */
  constructor(t, { rate, queueBytes }) {
    t.after(() => this.#remove());
    for (const name of [this.#client, this.#server]) run('ip', 'netns', 'add', name);
    for (const [letter, number] of Object.entries(LINKS)) {
      const link = device(letter);
      run(
        'ip',
        'link',
        'add',
        'name',
        link,
        'netns',
        this.#client,
        'type',
        'veth',
        'peer',
        'name',
        link,
        'netns',
        this.#server,
      );
      for (const [name, host] of [
        [this.#client, 1],
        [this.#server, 2],
      ]) {
        this.#ip(name, 'addr', 'add', `10.77.${number}.${host}/30`, 'dev', link);
        this.#ip(name, 'link', 'set', link, 'up');
        this.#exec(
          name,
          'tc',
          'qdisc',
          'add',
          'dev',
          link,
          'root',
          'tbf',
          'rate',
          rate,
          'burst',
          '5kb',
          'limit',
          String(queueBytes),
        );
      }
    }
    for (const [name, own, peer, far] of [
      [this.#client, CLIENT, SERVER, 2],
      [this.#server, SERVER, CLIENT, 1],
    ]) {
      this.#ip(name, 'link', 'set', 'lo', 'up');
      this.#ip(name, 'addr', 'add', `${own}/32`, 'dev', 'lo');
      // Layer 4 hash: every connection draws its link, as with ECMP by five-tuple.
      this.#exec(
        name,
        'sysctl',
        '-q',
        '-w',
        'net.ipv4.fib_multipath_hash_policy=1',
        'net.ipv4.conf.all.rp_filter=0',
      );
      this.#ip(
        name,
        'route',
        'add',
        `${peer}/32`,
        'src',
        own,
        'nexthop',
        'via',
        `10.77.1.${far}`,
        'nexthop',
        'via',
        `10.77.2.${far}`,
      );
      for (const number of Object.values(LINKS)) {
        this.#ip(
          name,
          'route',
          'add',
          `${peer}/32`,
          'via',
          `10.77.${number}.${far}`,
          'src',
          own,
          'table',
          String(100 + number),
        );
      }
    }
  }

  /** Connections to this port of the server take this link, there and back. */
  pin(port, link) {
    const table = String(100 + LINKS[link]);
    this.#ip(this.#client, 'rule', 'add', 'ipproto', 'tcp', 'dport', String(port), 'table', table);
    this.#ip(this.#server, 'rule', 'add', 'ipproto', 'tcp', 'sport', String(port), 'table', table);
  }

  /** Bytes that the client has sent on this link. */
  sent(link) {
    const [{ stats64 }] = JSON.parse(
      run('ip', '-n', this.#client, '-json', '-s', 'link', 'show', 'dev', device(link)),
    );
    return stats64.tx.bytes;
  }

  /** A node program on one of the hosts; the child process. */
  spawn(host, file, args) {
    const name = host === 'client' ? this.#client : this.#server;
    return spawn('ip', ['netns', 'exec', name, process.execPath, file, ...args], { cwd: root });
  }

  /** Run a node program on a host to its end: { code, stdout, stderr }. */
  async run(host, file, args) {
    const child = this.spawn(host, file, args);
    let stdout = '';
    let stderr = '';
    child.stdout.setEncoding('utf8').on('data', (text) => (stdout += text));
    child.stderr.setEncoding('utf8').on('data', (text) => (stderr += text));
    const [code] = await once(child, 'close');
    return { code, stdout, stderr };
  }

  /** Start a node program on a host that prints a line when it is ready; killed when the test ends. */
  async start(t, host, file, args) {
    const child = this.spawn(host, file, args);
    const closed = once(child, 'close');
    t.after(async () => {
      child.kill('SIGKILL'); // `ip netns exec` has become the program itself
      await closed;
    });
    child.stderr.resume();
    await Promise.race([once(child.stdout, 'data'), closed.then(([code]) => assertRunning(code, file))]);
    child.stdout.resume();
  }

  #exec(name, ...command) {
    run('ip', 'netns', 'exec', name, ...command);
  }

  #ip(name, ...args) {
    run('ip', '-n', name, ...args);
  }

  #remove() {
    for (const name of [this.#client, this.#server]) {
      try {
        run('ip', 'netns', 'del', name);
      } catch {
        // it was never made
      }
    }
  }
}

function assertRunning(code, file) {
  throw new Error(`${file} ended with ${code} before it was ready`);
}
