/**
 * Imported into every test file by ../run.mjs: when the file has ended, what it took of a processor is kept, with the
 * processes that it has waited for. Nothing where there is no /proc.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { processorTime } from './processor-time.mjs';

const file = process.argv[1] ?? '';
const directory = process.env.REPNET_FILE_TIMES;

// Not in the processes that tests start, which inherit this import.
if (directory !== undefined && /\.test\.(mjs|cjs|js)$/.test(file))
  process.once('exit', () => {
    const times = { file, wall: performance.now() / 1_000, processor: processorTime() };
    writeFileSync(join(directory, `${process.pid}.json`), JSON.stringify(times));
  });
