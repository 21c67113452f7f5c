/**
 * What the soak is about: three networks in which a second connection is refused or falls silent and a first never is, and flows
 * of sizes around the thresholds.
 */

export const HOST = '127.0.0.1';
const TRANSLATED = '127.0.0.9';
const SMALL = 10_000;

/** The first ports of the servers, and what each is like. The larger threshold is the default one. */
export const SERVERS = [
  { port: 10_000, threshold: SMALL },
  { port: 10_010, threshold: 100_000 },
];
const firsts = SERVERS.map(({ port }) => port).join(', ');
const seconds = SERVERS.map(({ port }) => port + 1).join(', ');

const FATES = 16;
/** From its nth packet on, either way, a second connection is silent; a quarter of them is not. */
const silences = Array.from(
  { length: (FATES * 3) / 4 },
  (_, n) => `ct mark ${n + 1} ct packets > ${n} counter drop`,
);

/** name: what nftables does there, and whether the server is a cluster. */
export const FABRICS = {
  cluster: { workers: 2, rules: '' },
  nat: {
    workers: 0,
    rules: `table ip nat {
  chain postrouting { type nat hook postrouting priority 100 ;
    tcp dport { ${firsts}, ${seconds} } snat to ${TRANSLATED}
  }
}`,
  },
  silent: {
    workers: 0,
    rules: `table ip silent {
  chain prerouting { type filter hook prerouting priority -150 ;
    tcp dport { ${seconds} } ct state new ct mark 0 ct mark set numgen random mod ${FATES} offset 1
  }
  chain input { type filter hook input priority 0 ;
    ${silences.join('\n    ')}
  }
}`,
  },
};

const HEADER = 16;

/** Flow `n`: the same in each run. A RepSYN winner is the only connection there is, which nobody may silence. */
export function flowOf(fabric, n) {
  const server = SERVERS[n % 8 === 0 ? 1 : 0];
  const { threshold } = server;
  const sizes = [100, threshold / 2, threshold - HEADER - 1, threshold - HEADER, threshold - HEADER + 1];
  sizes.push(threshold + 1, 1.5 * threshold, 3 * threshold, 5 * threshold);
  const mode = Math.floor(n / 7) % 10;
  const connect = { peer: n % 3 === 0 ? 'auto' : 'repnet', replicate: 'flow' };
  if (mode === 0) connect.copyDelay = 1;
  if (mode === 1 && fabric !== 'silent') connect.replicate = 'syn';
  return {
    server,
    connect,
    shape: {
      requestLength: sizes[Math.floor(n / 5) % sizes.length],
      replyLength: sizes[Math.floor(n / 11) % sizes.length],
      half: n % 2 === 0,
    },
  };
}
