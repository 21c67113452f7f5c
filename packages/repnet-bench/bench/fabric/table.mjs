/** Results of `npm run bench:fabric`, as JSON, as a table, and in the README. */
const BEGIN = '<!-- made by npm run bench:fabric: begin -->';
const END = '<!-- made by npm run bench:fabric: end -->';
/** A quantile is told where so many requests lie beyond it. */
const BEYOND = 3;

/** The nearest rank's; null where too few lie beyond it. */
export function quantile(sorted, share) {
  if (sorted.length * (1 - share) < BEYOND - 1e-9) return null;
  return sorted[Math.ceil(sorted.length * share) - 1];
}

/** A row for each way: requests, and quantiles of their times in ms. */
export function rows(took) {
  return Object.entries(took).map(([way, times]) => {
    const sorted = Float64Array.from(times).sort();
    const [p50, p99, p999] = [0.5, 0.99, 0.999].map((share) => quantile(sorted, share));
    return { way, requests: sorted.length, p50, p99, p999 };
  });
}

const ms = (value) => (value === null ? '–' : value.toFixed(value < 100 ? 1 : 0));
const gain = (value, plain) =>
  value === null || plain === null ? '–' : `${Math.round(100 * (value / plain - 1))} %`.replace('-', '−');

/** The table in Markdown, and what is said beside it. */
export function render({ date, node, kernel, seconds, workers, services }) {
  const lines = [
    '| service | over | requests | median, ms | p99, ms | | p99.9, ms | |',
    '|---|---|---:|---:|---:|---:|---:|---:|',
  ];
  for (const { name, skipped, measured } of services) {
    if (skipped !== undefined) {
      lines.push(`| ${name} | not measured: ${skipped} | | | | | | |`);
      continue;
    }
    const [plain] = measured;
    for (const row of measured) {
      const { way, requests, p50, p99, p999 } = row;
      const [by99, by999] = row === plain ? ['', ''] : [gain(p99, plain.p99), gain(p999, plain.p999)];
      lines.push(
        `| ${name} | ${way} | ${requests} | ${ms(p50)} | ${ms(p99)} | ${by99} | ${ms(p999)} | ${by999} |`,
      );
    }
  }
  const failed = services.reduce((sum, service) => sum + (service.failed ?? 0), 0);
  const unfaithful = services.flatMap(({ name, unfaithful = [] }) =>
    unfaithful.map((reason) => `${name}: ${reason}`),
  );
  lines.push(
    '',
    `Measured on ${date} with Node ${node} on Linux ${kernel}, for ${seconds} s each, ${workers === 1 ? 'one request' : `${workers} requests`} at a time; ${failed} sessions failed.`,
  );
  if (unfaithful.length > 0) lines.push('', `**Not faithful**: ${unfaithful.join('; ')}.`);
  return lines.join('\n');
}

/** The README with this between its marks. */
export function inReadme(readme, text) {
  const [before, rest] = readme.split(BEGIN);
  const after = rest?.split(END)[1];
  if (after === undefined) throw new Error('the README has no place for the table');
  return `${before}${BEGIN}${text === '' ? '' : `\n${text}`}\n${END}${after}`;
}

/** Returns the text between the marks. */
export const ofReadme = (readme) => readme.split(BEGIN)[1].split(END)[0].trim();

/** The README's text above the table. */
export const README = `### What it does for the tail of three services

Three paths between two racks at 50 Mbps, one of them congested: two long flows stand in its queue for 40 ms. Requests of 1 KB to 100 KB, ten on each
connection, the first with its handshake; the ways take turns. Real kernels, real servers, over the fabric of Tailcut's
kernel lab. RepFlow is this library at both ends, RepSYN at the client's alone (with Express at both), and \`repnet-proxy\` stands at both ends
of a plain client and a plain server.`;
