/** The parts of the soak, each in a process of its own, and what became of its flows. */
import { run } from '../apps/support/process.mjs';

async function outcomeOf(what, program, args) {
  const { code, stdout, stderr } = await run(program, args);
  if (code !== 0) throw new Error(`${what}: ${stderr}`);
  return JSON.parse(stdout);
}

/** Flows through one fabric, in a network namespace of its own. */
export function soak(fabric, flows, library = 'repnet') {
  const args = ['--net', process.execPath, 'test/soak/child.mjs', fabric, library, String(flows)];
  return outcomeOf(fabric, 'unshare', args);
}

/** So many flows, for so many seconds at most, through the relay that breaks connections, on one version of Node; `mode`: by that alone. */
export function throughRelay(binary, flows, seconds, seed, { library = 'repnet', mode } = {}) {
  return outcomeOf(binary, binary, [
    '--expose-gc',
    'test/soak/relay.mjs',
    library,
    ...[flows, seconds, seed, ...(mode === undefined ? [] : [mode])].map(String),
  ]);
}

const middle = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];

/** KiB by which memory after a collection was more in the last quarter of a run than in the second; undefined: too short to tell. */
export function growth(memory) {
  const quarter = memory.length >> 2;
  if (quarter < 3) return undefined;
  return middle(memory.slice(-quarter)) - middle(memory.slice(quarter, 2 * quarter));
}
