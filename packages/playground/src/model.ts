/**
 * An experiment as the controls have it: sections and schemes, read from a plan, in which every default is written out, and
 * written as a file, in which none is.
 */
import { isTable, key, Raw, same, type Table, type Value, write } from './toml.js';

/** A component that an experiment can name, as the simulator describes it. */
export interface Component {
  group: string;
  name: string;
  summary: string;
  default: boolean;
  parameters: Parameter[];
}

/** A parameter of a component. */
export interface Parameter {
  name: string;
  takes: string;
  default: Value;
  required: boolean;
  doc: string;
}

/** A run of a plan, as far as the page reads it. */
export interface Run {
  id: string;
  scheme: string;
  seed: number;
  config: { scheme: Table; labels: Table } & Table;
  facts: { links: number; flows: number; expected_packet_hops: number; hosts: number };
}

/** A plan, as far as the page reads it. */
export interface Plan {
  title: string;
  question: string;
  baseline: string;
  schemes: string[];
  seeds: number[];
  sweep: unknown[];
  measure: Table;
  model: Table;
  runs: Run[];
}

/** The sections that all schemes share, and those that they choose. */
export const SHARED = [
  'topology',
  'host',
  'switch',
  'faults',
  'traffic',
  'horizon',
  'measure',
  'model',
  'series',
] as const;
export const CHOSEN = ['transport', 'queue', 'balance', 'replicate'] as const;

/** A scheme: what it is called and what it chooses. */
export interface Scheme {
  name: string;
  sections: Record<(typeof CHOSEN)[number], Table>;
}

/** An experiment. */
export interface Model {
  title: string;
  question: string;
  seeds: number[];
  baseline: string;
  sections: Record<(typeof SHARED)[number], Table>;
  schemes: Scheme[];
}

/** The experiment of a plan. Of a sweep, the first point. */
export function fromPlan(plan: Plan): Model {
  const firstOf = (name: string) => plan.runs.find((run) => run.scheme === name) as Run;
  const first = plan.runs[0] as Run;
  const section = (name: string): Table => {
    const told = { measure: plan.measure, model: plan.model } as Record<string, Table>;
    return structuredClone(told[name] ?? (first.config[name] as Table));
  };
  return {
    title: plan.title,
    question: plan.question,
    seeds: plan.seeds,
    baseline: plan.baseline,
    sections: Object.fromEntries(SHARED.map((name) => [name, section(name)])) as Model['sections'],
    schemes: plan.schemes.map((name) => ({
      name,
      sections: structuredClone(firstOf(name).config.scheme) as Scheme['sections'],
    })),
  };
}

/** The component that a section or a parameter has chosen. */
export function chosen(components: readonly Component[], group: string, value: Table): Component | undefined {
  const kind = value.kind ?? group;
  return components.find((component) => component.group === group && component.name === kind);
}

/** Without what is so by default. */
export function reduced(components: readonly Component[], group: string, value: Table): Table {
  const component = chosen(components, group, value);
  const kept: Table = {};
  for (const [name, of] of Object.entries(value)) {
    const usual = component?.parameters.find((parameter) => parameter.name === name)?.default;
    if (of === null || (name !== 'kind' && usual !== undefined && same(of, usual))) {
      continue;
    }
    if (Array.isArray(of)) {
      kept[name] = of.map((item) =>
        isTable(item) && item.kind ? listed(components, group, name, item) : item,
      );
    } else {
      kept[name] = isTable(of) ? within(components, `${group}.${name}`, of, usual) : of;
    }
  }
  return kept;
}

/** An item of a list: of a choice of its own, or of the one that the list is part of, as patterns of traffic are. */
function listed(components: readonly Component[], group: string, name: string, item: Table): Table {
  const own = `${group}.${name}`;
  return reduced(components, components.some((component) => component.group === own) ? own : group, item);
}

/** A table that is a parameter: a choice with parameters of its own, or keys with defaults. */
function within(
  components: readonly Component[],
  group: string,
  value: Table,
  usual: Value | undefined,
): Table {
  // What is chosen in two places is described in one.
  const name = group.slice(group.lastIndexOf('.'));
  const places = components.filter(
    (component) => component.group.endsWith(name) && component.name === value.kind,
  );
  if (places[0] !== undefined) {
    return reduced(components, places[0].group, value);
  }
  if (value.kind !== undefined || !isTable(usual)) {
    return value;
  }
  return Object.fromEntries(Object.entries(value).filter(([each, of]) => !same(of, usual[each] ?? null)));
}

/** The experiment file. */
export function toText(model: Model, components: readonly Component[]): string {
  const lines = [`title = ${write(model.title)}`];
  if (model.question) {
    lines.push('question = """', ...folded(model.question), '"""');
  }
  const counted = model.seeds.every((seed, at) => seed === at + 1);
  if (!counted || model.seeds.length > 1) {
    lines.push(`seeds = ${counted ? model.seeds.length : write(model.seeds)}`);
  }
  for (const name of SHARED) {
    const table = reduced(components, name, model.sections[name]);
    if (Object.keys(table).length > 0) {
      lines.push('', `[${name}]`, ...pairs(table));
    }
  }
  for (const scheme of model.schemes) {
    lines.push('', `[schemes.${key(scheme.name)}]`);
    for (const name of CHOSEN) {
      const table = reduced(components, name, scheme.sections[name]);
      const isDefault = Object.keys(table).length === 1 && chosen(components, name, table)?.default;
      if (!isDefault) {
        lines.push(`${name} = ${write(table)}`);
      }
    }
  }
  lines.push('', '[report]', `baseline = ${write(model.baseline)}`);
  return `${lines.join('\n')}\n`;
}

function pairs(table: Table): string[] {
  const whole = Object.entries(table).filter(([, of]) => of !== null);
  return whole.flatMap(([name, of]) => {
    if (Array.isArray(of) && of.length > 1 && of.every(isTable)) {
      return [`${key(name)} = [`, ...of.map((item) => `    ${write(item)},`), ']'];
    }
    return [`${key(name)} = ${write(of)}`];
  });
}

/** A paragraph as lines of a text in three quotes, each but the last ending in what joins them. */
function folded(text: string): string[] {
  const words = write(text).slice(1, -1).split(' ');
  const lines = [''];
  for (const word of words) {
    const line = lines[lines.length - 1] as string;
    if (line.length + word.length > 118) {
      lines[lines.length - 1] = `${line}\\`;
      lines.push(`${word} `);
    } else {
      lines[lines.length - 1] = `${line}${word} `;
    }
  }
  lines[lines.length - 1] = `${(lines[lines.length - 1] as string).trimEnd()}\\`;
  return lines;
}

/** A value as a field shows it. */
export function shown(value: Value | undefined): string {
  if (value === null || value === undefined) {
    return '';
  }
  return typeof value === 'string' ? value : value instanceof Raw ? value.text : write(value);
}
