/**
 * Sort a million numbers with one master and eleven slave processes, as the paper's cluster did, over plain TCP, RepSYN and
 * RepFlow in turn.
 *
 *   node examples/bucket-sort/run.js [--numbers 1000000] [--slaves 11] [--replicate false|syn|flow]
 */
const { fork } = require('node:child_process');
const { parseArgs } = require('node:util');
const path = require('node:path');
const { bucketSort } = require('./master.js');

async function startSlave() {
  const child = fork(path.join(__dirname, 'slave.js'));
  const { port } = await new Promise((resolve, reject) =>
    child.once('message', resolve).once('exit', () => reject(new Error('a slave did not start'))),
  );
  return { child, address: { host: '127.0.0.1', port } };
}

async function main() {
  const { values } = parseArgs({
    options: {
      numbers: { type: 'string', default: '1000000' },
      slaves: { type: 'string', default: '11' },
      replicate: { type: 'string' },
    },
  });
  const numbers = Uint16Array.from({ length: Number(values.numbers) }, () =>
    Math.floor(Math.random() * 65536),
  );
  const expected = Uint16Array.from(numbers).sort();
  const slaves = await Promise.all(Array.from({ length: Number(values.slaves) }, startSlave));
  try {
    for (const mode of values.replicate === undefined ? ['false', 'syn', 'flow'] : [values.replicate]) {
      const began = performance.now();
      const { sorted, mice } = await bucketSort({
        numbers,
        slaves: slaves.map(({ address }) => address),
        replicate: mode === 'false' ? false : mode,
      });
      const seconds = (performance.now() - began) / 1000;
      const right = Buffer.compare(Buffer.from(sorted.buffer), Buffer.from(expected.buffer)) === 0;
      console.log(`${mode.padEnd(5)}  ${mice} mice  ${seconds.toFixed(2)} s  ${right ? 'sorted' : 'WRONG'}`);
      if (!right) process.exitCode = 1;
    }
  } finally {
    for (const { child } of slaves) child.disconnect();
  }
}

main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
