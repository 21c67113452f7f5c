/**
 * Reads plans, one JSON per line, and writes for each the experiment file that the page would
 * write: `node rewrite.mjs COMPONENTS`.
 */
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fromPlan, toText } from './dist/model.js';

const components = JSON.parse(readFileSync(process.argv[2], 'utf8'));
for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(toText(fromPlan(JSON.parse(line)), components)));
}
