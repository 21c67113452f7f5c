/**
 * The WebAssembly module in Node, for tests and measurements:
 *
 *     node node.mjs run MODULE EXPERIMENT OUT
 *     node node.mjs time MODULE EXPERIMENT
 *
 * The first writes OUT/plan.json and OUT/ID.bin, the answer to each run. The second prints seconds
 * of processor time of each run, the first time and warm.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Engine } from './dist/engine.js';

const [task, module, experiment, out] = process.argv.slice(2);
const engine = await Engine.start(readFileSync(module));
const text = engine.plan(experiment, readFileSync(experiment, 'utf8'));
const runs = JSON.parse(text).runs.map((run) => [run.id, JSON.stringify(run)]);

if (task === 'run') {
  writeFileSync(join(out, 'plan.json'), text);
  for (const [id, run] of runs) {
    writeFileSync(
      join(out, `${id}.bin`),
      engine.run(run, 100, () => {}),
    );
  }
} else {
  const processor = (work) => {
    const before = process.cpuUsage();
    work();
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1e6;
  };
  // Only the first run compiles code; later runs use it.
  const timed = runs.map(([, run]) => {
    const work = () => engine.run(run, 100, () => {});
    const first = processor(work);
    work();
    return { first, warm: processor(work) };
  });
  console.log(JSON.stringify(timed));
}
