/**
 * An experiment as the controls edit it: sections and schemes. It is read from a plan, in which
 * every default is written out, and written as a file without defaults.
 */
import { isTable, key, Raw, same, type Table, type Value, write } from './toml.js';

/** A component that an experiment can name, as the simulator describes it. */
export interface Component {
  group: string;
  name: string;
  summary: string;
  details: string;
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

/** The fields of a run that the page reads. */
export interface Run {
  id: string;
  scheme: string;
  seed: number;
  config: { scheme: Table; labels: Table } & Table;
  facts: { links: number; flows: number; expected_packet_hops: number; hosts: number };
}

/** The fields of a plan that the page reads. */
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

/** The sections that all schemes share, and those that a scheme chooses. */
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

/** A scheme: its name and its sections. */
export interface Scheme {
  name: string;
  /** `interface`, which has no controls, only where hosts have several and it is not the default. */
  sections: Record<(typeof CHOSEN)[number], Table> & { interface?: Table };
}

export interface Model {
  title: string;
  question: string;
  seeds: number[];
  baseline: string;
  sections: Record<(typeof SHARED)[number], Table>;
  schemes: Scheme[];
}

/** Returns the experiment of a plan; of a sweep, its first point. */
export function fromPlan(plan: Plan): Model {
  const firstOf = (name: string) => plan.runs.find((run) => run.scheme === name) as Run;
  const first = plan.runs[0] as Run;
  const section = (name: string): Table => {
    const whole = { measure: plan.measure, model: plan.model } as Record<string, Table>;
    return structuredClone(whole[name] ?? (first.config[name] as Table));
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

/** Returns the component that a section or a parameter has chosen. */
export function chosen(components: readonly Component[], group: string, value: Table): Component | undefined {
  const kind = value.kind ?? group;
  return components.find((component) => component.group === group && component.name === kind);
}

/** Returns a table without the values that are defaults. */
export function reduced(components: readonly Component[], group: string, value: Table): Table {
  const component = chosen(components, group, value);
  const kept: Table = {};
  const usually = (name: string) =>
    component?.parameters.find((parameter) => parameter.name === name)?.default;
  // Other hosts have other defaults than those of the description.
  const others = value.hosts !== undefined && !same(value.hosts, usually('hosts') ?? null);
  for (const [name, of] of Object.entries(value)) {
    const usual = usually(name);
    const isUsual = !others && name !== 'kind' && usual !== undefined && same(of, usual);
    if (of === null || isUsual) {
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

/**
 * Returns an item of a list without its defaults. It belongs to a group of its own, or to that of
 * the list's table, as parts of a traffic mix do.
 */
function listed(components: readonly Component[], group: string, name: string, item: Table): Table {
  const own = `${group}.${name}`;
  return reduced(components, components.some((component) => component.group === own) ? own : group, item);
}

/**
 * Returns a table in a table without its defaults: a component with parameters, or keys with
 * defaults.
 */
function within(
  components: readonly Component[],
  group: string,
  value: Table,
  usual: Value | undefined,
): Table {
  // A choice that occurs in two places is described in only one group.
  const name = group.slice(group.lastIndexOf('.'));
  const places = components.filter(
    (component) => component.group.endsWith(name) && component.name === value.kind,
  );
  if (places[0] !== undefined) {
    return reduced(components, places[0].group, value);
  }
  const others = isTable(usual) && !same(value.hosts ?? null, usual.hosts ?? null);
  if (value.kind !== undefined || !isTable(usual) || others) {
    return value;
  }
  return Object.fromEntries(Object.entries(value).filter(([each, of]) => !same(of, usual[each] ?? null)));
}

/** Writes the experiment file. */
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
    for (const name of [...CHOSEN, 'interface'] as const) {
      const table = reduced(components, name, scheme.sections[name] ?? {});
      const given = Object.keys(table).length;
      const isDefault = given === 0 || (given === 1 && chosen(components, name, table)?.default);
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

/**
 * Wraps a paragraph for a string in three quotes; a backslash at the end of a line joins it to the
 * next.
 */
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

/** Returns the text of a value in a field. */
export function shown(value: Value | undefined): string {
  if (value === null || value === undefined) {
    return '';
  }
  return typeof value === 'string' ? value : value instanceof Raw ? value.text : write(value);
}
