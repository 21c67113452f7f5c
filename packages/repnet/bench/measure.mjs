/** Statistics of the benchmark: ratios to plain net taken round by round, so that what disturbs a round disturbs both. */

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

export function quartiles(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
  return [at(0.25), at(0.75)];
}

/**
 * Run every mode in turn for `rounds` rounds (order rotated each round), after one unmeasured `warmUp(mode)` each. `run(mode)`
 * resolves to costs by name (lower is better). Returns per mode and cost the values and the ratios to the round's 'net'.
 */
export async function compare(modes, rounds, run, warmUp = run) {
  const results = Object.fromEntries(modes.map((mode) => [mode, {}]));
  for (const mode of modes) await warmUp(mode);
  for (let round = 0; round < rounds; round++) {
    const costs = {};
    for (let i = 0; i < modes.length; i++) {
      const mode = modes[(i + round) % modes.length];
      costs[mode] = await run(mode);
    }
    for (const mode of modes) {
      for (const [name, value] of Object.entries(costs[mode])) {
        results[mode][name] ??= { values: [], ratios: [] };
        results[mode][name].values.push(value);
        results[mode][name].ratios.push(value / costs.net[name]);
      }
    }
  }
  return results;
}

/** A fixed-width table. */
export function table(header, rows) {
  const widths = header.map((name, column) =>
    Math.max(name.length, ...rows.map((row) => row[column].length)),
  );
  const line = (cells) =>
    cells
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[column]) : cell.padStart(widths[column])))
      .join('  ')
      .trimEnd();
  return [line(header), widths.map((width) => '-'.repeat(width)).join('  '), ...rows.map(line)].join('\n');
}
