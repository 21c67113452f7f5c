/** A reporter of node:test for run.mjs: the counts of a run as one JSON object, how long each test took, what failed, what was skipped, and why. */
import { basename } from 'node:path';

const COUNTS = /^(tests|pass|fail|cancelled|skipped|duration_ms) ([\d.]+)$/;

export default async function* summary(events) {
  const counts = {};
  const left = [];
  const failed = [];
  const times = [];
  for await (const { type, data } of events) {
    const [, name, value] =
      (type === 'test:diagnostic' && data.nesting === 0 && COUNTS.exec(data.message)) || [];
    if (name !== undefined) counts[name] = Number(value);
    const test = `${basename(data.file ?? '')}: ${data.name}`;
    if (type === 'test:pass' || type === 'test:fail')
      times.push({ test, seconds: data.details.duration_ms / 1_000 });
    // A test that fails because one within it does says no more than that.
    if (type === 'test:fail' && data.details.error.failureType !== 'subtestsFailed') {
      const { error } = data.details;
      failed.push({ test, message: String(error.cause?.message ?? error.cause ?? error.message) });
    }
    // Without a reason: left out by the test's own choice.
    if (type === 'test:pass' && data.skip !== undefined && data.skip !== false)
      left.push({
        test,
        why: typeof data.skip === 'string' && data.skip !== '' ? data.skip : 'no reason given',
      });
  }
  yield JSON.stringify({ ...counts, left, failed, times });
}
