/** What run.mjs prints at its end, and hands on: what was skipped, by kind, and what took longest. */
import { basename } from 'node:path';
import { kindOf } from './skips.mjs';

const HEADINGS = {
  missing: 'An optional part is missing',
  node: 'Not this Node',
  busy: 'Not judged, since the machine was too busy',
};
const MOST_NAMES = 5;

/** One record for each reason: `{ kind, suite, why, how, tests, tried }`. `left`: { test, why, version }. */
export function skipRecords(left) {
  const records = new Map();
  for (const { test, why: skip, version } of left) {
    const record = records.get(skip) ?? { suite: 'repnet', ...kindOf(skip), tests: [] };
    record.tests.push(`Node ${version} ${test}`);
    records.set(skip, record);
  }
  return [...records.values()];
}

/** The records as lines for a reader; what was not judged comes last. */
export function skipLines(records) {
  return Object.entries(HEADINGS).flatMap(([kind, heading]) => {
    const those = records.filter((record) => record.kind === kind);
    const count = those.reduce((sum, { tests }) => sum + tests.length, 0);
    return those.length === 0 ? [] : [`${heading} (${count}):`, ...those.flatMap(recordLines)];
  });
}

function recordLines({ why, how, tried, kind, tests }) {
  const details = [
    how === null ? '' : `; brought by: ${how}`,
    kind === 'busy' ? `; tried ${tried} times` : '',
  ];
  const more = tests.length > MOST_NAMES ? [`and ${tests.length - MOST_NAMES} more`] : [];
  const names = [...tests.slice(0, MOST_NAMES), ...more];
  return [`  ${why} (${tests.length})${details.join('')}`, ...names.map((name) => `    ${name}`)];
}

/** The `count` slowest tests by the clock, and as many files by the time that they took of a processor. */
export function slowestLines(count, { version, times, fileTimes }) {
  const tests = [...times].sort((a, b) => b.seconds - a.seconds).slice(0, count);
  const files = [...fileTimes].sort((a, b) => b.processor - a.processor).slice(0, count);
  return [
    `Node ${version}, the slowest tests, s:`,
    ...tests.map(({ test, seconds }) => `${seconds.toFixed(1).padStart(8)}  ${test}`),
    `Node ${version}, the files that took most of a processor, s of it and s by the clock:`,
    ...files.map(
      ({ file, wall, processor }) =>
        `${processor.toFixed(1).padStart(8)} ${wall.toFixed(1).padStart(7)}  ${basename(file)}`,
    ),
  ];
}
