/** docs/soak.md, by what the soak has seen. */
import { readFileSync } from 'node:fs';
import os from 'node:os';
import { growth } from './soak.mjs';

/** KiB: what fills up as flows go by (remembered servers, hosts, pairs) is bounded, and smaller than that. */
const MOST_GROWTH = 16 * 1024;
const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
const number = (value) => value.toLocaleString('en-US');
const sum = (rows, name) => rows.reduce((total, row) => total + row[name], 0);

export function reportOf({ seed, wanted, minutes, fabrics, without, parts }) {
  const rows = new Map();
  for (const { rooms } of parts)
    for (const room of rooms) {
      const name = `${room.mode} | ${room.peer}`;
      rows.set(name, [...(rows.get(name) ?? []), room]);
    }
  const lost = sum(fabrics, 'lost');
  const rooms = [...rows.values()].flat();
  const wrong = sum(rooms, 'wrong');
  const most = Math.max(0, ...parts.map(({ memory }) => growth(memory) ?? 0));
  const flows = sum(fabrics, 'flows') + sum(parts, 'flows');
  const bad = parts.flatMap((part) => part.wrong.map((each) => `    Node ${part.node}: ${each}`));
  const text = `# Soak

Made by \`npm run soak\`; its last result, of ${new Date().toISOString().slice(0, 10)}: repnet ${version}, Node ${[...new Set(parts.map(({ node }) => node))].join(', ')}, Linux
${os.release().split('-')[0]}, ${os.cpus().length} cores. Wanted: ${number(wanted)} flows in at most ${minutes} minutes. \`REPNET_FAULT_SEED=${seed}\` draws the same faults.

**${number(flows)} flows: ${lost + wrong} lost, doubled, mixed, or hung where net would not.** Memory after a collection, last quarter against second,
in the part where it grew most: ${number(most)} KiB (at most ${number(MOST_GROWTH)}).

## Through a relay that breaks connections

Faults are drawn at random, up to three for a flow: cut, reset, FIN, silence or a pause, of either connection, in either direction, at any byte.
*Complete*: every byte once, one end, one close, at both ends. *Failed*: one error, or an end where net would show one. *Hung*: silence where net is silent,
too, by the plan of the flow: what carried it, or all that did, falls silent. A peer of version 1 of the [wire format](wire-format.md) is one whose hellos and answers have lost their version on the way. Requests are up to 60 KB,
replies up to 95 KB.

| mode | peer | flows | complete | failed | hung | wrong |
|---|---|---|---|---|---|---|
${[...rows].map(([name, all]) => `| ${name} | ${['flows', 'complete', 'failed', 'hung', 'wrong'].map((column) => number(sum(all, column))).join(' | ')} |`).join('\n')}

| Node | beside busy loops | flows | seconds | of processor time | wrong | memory grew by, KiB |
|---|---|---|---|---|---|---|
${parts.map((part) => `| ${part.node} | ${part.busy ? 'yes' : 'no'} | ${number(part.flows)} | ${number(part.seconds)} | ${number(part.cpu)} | ${number(sum(part.rooms, 'wrong'))} | ${growth(part.memory) ?? 'too short to tell'} |`).join('\n')}

## Through network namespaces

A cluster of two processes, source NAT, and a path on which second connections fall silent; flows of sizes around the threshold, by RepFlow,
hedged and by RepSYN. All of them have to complete.

${without ? `Not run: ${without}.` : `| fabric | flows | seconds | lost |\n|---|---|---|---|\n${fabrics.map((each) => `| ${each.fabric} | ${number(each.flows)} | ${number(Math.round(each.seconds))} | ${each.lost} |`).join('\n')}`}
${bad.length > 0 ? `\n## What went wrong\n\n${bad.join('\n')}\n` : ''}`;
  return { text, ok: lost + wrong === 0 && most <= MOST_GROWTH };
}
