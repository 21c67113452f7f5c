/** A reporter of node:test for run.mjs: the counts of a run as one JSON object. */
const COUNTS = /^(tests|pass|fail|cancelled|skipped|duration_ms) ([\d.]+)$/;

export default async function* summary(events) {
  const counts = {};
  for await (const { type, data } of events) {
    const [, name, value] =
      (type === 'test:diagnostic' && data.nesting === 0 && COUNTS.exec(data.message)) || [];
    if (name !== undefined) counts[name] = Number(value);
  }
  yield JSON.stringify(counts);
}
