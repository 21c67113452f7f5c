/**
 * The controls: fields for every section of an experiment, built from the simulator's description
 * of its components.
 */
import { CHOSEN, type Component, chosen, type Model, type Parameter, SHARED, shown } from './model.js';
import { isTable, same, type Table, typed, type Value, write } from './toml.js';

/** The titles of the sections. */
const TITLES: Record<string, string> = {
  topology: 'Network',
  traffic: 'Traffic',
  horizon: 'Duration',
  host: 'Servers',
  switch: 'Switches',
  faults: 'Failures',
  measure: 'Measurements',
  transport: 'Transport',
  queue: 'Queues',
  balance: 'Load balancing',
  replicate: 'Copies',
};

/** The sections that are always visible, in this order. */
const FRONT = ['topology', 'traffic', 'horizon'] as const;

type Element = HTMLElementTagNameMap;

/** Creates an element with attributes and content. */
export function element<K extends keyof Element>(
  name: K,
  attributes: Record<string, string | boolean> = {},
  ...content: (Node | string)[]
): Element[K] {
  const made = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) {
    if (value !== false) {
      made.setAttribute(attribute, value === true ? '' : value);
    }
  }
  made.append(...content);
  return made;
}

/** A form with the fields of a model. Calls `onChange` after a field has changed the model. */
export class Controls {
  private count = 0;

  constructor(
    private readonly form: HTMLFormElement,
    private readonly components: readonly Component[],
    private readonly onChange: () => void,
  ) {}

  /** Shows a model, which its fields change in place. Keeps the focus and the open parts. */
  show(model: Model): void {
    const focused = document.activeElement?.id;
    const open = new Set([...this.form.querySelectorAll('details[open]')].map((details) => details.id));
    this.count = 0;
    const rest = SHARED.filter(
      (name) => !(FRONT as readonly string[]).includes(name) && TITLES[name] !== undefined,
    );
    const seeds = this.line('seed', 'Seed', this.seed(model), 'Another seed draws other flows.');
    this.form.replaceChildren(
      ...FRONT.map((name) => this.section(name, name, model.sections[name])),
      ...model.schemes.map((_, at) => this.scheme(model, at)),
      element(
        'details',
        { id: 'more' },
        element('summary', {}, 'Failures, servers, switches, measurements, seed'),
        ...rest.map((name) => this.section(name, name, model.sections[name])),
        element('fieldset', {}, element('legend', {}, 'Randomness'), seeds),
      ),
    );
    for (const details of this.form.querySelectorAll('details')) {
      details.open = open.has(details.id);
    }
    if (focused) {
      document.getElementById(focused)?.focus({ preventScroll: true });
    }
  }

  private scheme(model: Model, at: number): HTMLElement {
    const scheme = model.schemes[at] as Model['schemes'][number];
    const name = element('input', { type: 'text', value: scheme.name });
    name.addEventListener('change', () => {
      const free =
        name.value.trim() !== '' && model.schemes.every((other) => other.name !== name.value.trim());
      if (free) {
        const isBaseline = model.baseline === scheme.name;
        scheme.name = name.value.trim();
        model.baseline = isBaseline ? scheme.name : model.baseline;
      }
      this.onChange();
    });
    return element(
      'fieldset',
      {},
      element('legend', {}, `Scheme ${at + 1}: ${scheme.name}`),
      this.line(`scheme-${at}-name`, 'Name', name),
      ...CHOSEN.map((group) => this.section(`scheme-${at}-${group}`, group, scheme.sections[group])),
    );
  }

  private seed(model: Model): HTMLInputElement {
    const field = element('input', { type: 'number', min: '1', value: String(model.seeds[0] ?? 1) });
    field.addEventListener('change', () => {
      model.seeds = [Math.max(1, Math.round(Number(field.value) || 1))];
      this.onChange();
    });
    return field;
  }

  /** Creates the fields of a component: the choice of its kind, and its parameters. */
  private section(id: string, group: string, value: Table): HTMLElement {
    const own = TITLES[group] ?? group.slice(group.lastIndexOf('.') + 1);
    const kinds = this.components.filter((component) => component.group === group);
    const component = chosen(this.components, group, value);
    const nested = id !== group;
    // The part of a scheme is recognised by its field for the kind, and needs no frame.
    const box = nested
      ? element('div', { class: 'part' })
      : element('fieldset', {}, element('legend', {}, own));
    if (value.kind !== undefined) {
      const select = element(
        'select',
        {},
        ...kinds.map(({ name }) => element('option', { value: name, selected: name === value.kind }, name)),
      );
      select.addEventListener('change', () => {
        for (const name of Object.keys(value)) {
          delete value[name];
        }
        value.kind = select.value;
        this.onChange();
      });
      const about = [component?.summary, component?.details].filter(Boolean).join(' ');
      box.append(this.line(`${id}-kind`, nested ? own : 'Kind', select, about));
    }
    const parameters = component?.parameters ?? [];
    const front = parameters.filter(({ name }) =>
      ['load', 'sizes', 'k', 'arrivals', 'drain', 'congestion'].includes(name),
    );
    const back = parameters.filter((parameter) => !front.includes(parameter));
    box.append(...front.map((parameter) => this.parameter(id, group, value, parameter)));
    if (back.length > 0) {
      const fields = back.map((parameter) => this.parameter(id, group, value, parameter));
      const folded = nested || back.length > 2 || front.length > 0;
      box.append(
        ...(folded
          ? [
              element(
                'details',
                { id: `${id}-all` },
                element('summary', {}, `${back.length} more`),
                ...fields,
              ),
            ]
          : fields),
      );
    }
    return box;
  }

  private parameter(id: string, group: string, value: Table, parameter: Parameter): HTMLElement {
    const { name, doc } = parameter;
    const now = value[name];
    const deeper = this.within(group, name);
    if (isTable(now) && now.kind !== undefined && deeper !== undefined) {
      return this.section(`${id}-${name}`, deeper, now);
    }
    const field = this.field(parameter, now, (typedValue) => {
      if (typedValue === '') {
        delete value[name];
      } else {
        value[name] = typed(typedValue);
      }
      this.onChange();
    });
    const line = this.line(`${id}-${name}`, name, field, doc);
    line.classList.toggle(
      'changed',
      parameter.default !== undefined && !same(now ?? null, parameter.default ?? null),
    );
    return line;
  }

  /**
   * Returns the group of components among which a parameter chooses; undefined if there is none.
   */
  private within(group: string, name: string): string | undefined {
    const groups = this.components.map((component) => component.group);
    return (
      groups.find((each) => each === `${group}.${name}`) ?? groups.find((each) => each.endsWith(`.${name}`))
    );
  }

  /** Creates a field for the value of a parameter. */
  private field(
    parameter: Parameter,
    now: Value | undefined,
    onTyped: (text: string) => void,
  ): HTMLInputElement | HTMLSelectElement {
    const { name, takes } = parameter;
    const words = /^one of ("[^"]+"(?:, "[^"]+")*)$/
      .exec(takes)?.[1]
      ?.split(', ')
      .map((word) => word.slice(1, -1));
    const choice = takes === 'true or false' ? ['true', 'false'] : words;
    if (choice !== undefined) {
      const options = now === null || now === undefined ? ['', ...choice] : choice;
      const made = options.map((word) =>
        element('option', { value: word, selected: word === shown(now) }, word),
      );
      const select = element('select', {}, ...made);
      select.addEventListener('change', () => onTyped(select.value));
      return select;
    }
    if (name === 'load' && typeof now === 'number') {
      const range = element('input', {
        type: 'range',
        min: '0.05',
        max: '0.95',
        step: '0.05',
        value: String(now),
      });
      range.addEventListener('change', () => onTyped(range.value));
      return range;
    }
    const field = element('input', {
      type: 'text',
      value: shown(now),
      placeholder: shown(parameter.default),
    });
    if (takes.startsWith('one of "web-search"')) {
      field.setAttribute('list', this.sizes());
    }
    field.addEventListener('change', () =>
      onTyped(Array.isArray(now) || isTable(now) ? field.value || write(now) : field.value),
    );
    return field;
  }

  /** Creates the list of built-in size distributions, if it does not exist, and returns its id. */
  private sizes(): string {
    if (document.getElementById('known-sizes') === null) {
      const known = this.components.filter((component) => component.group === 'sizes');
      const options = known.map(({ name, summary }) => element('option', { value: name }, summary));
      document.body.append(element('datalist', { id: 'known-sizes' }, ...options));
    }
    return 'known-sizes';
  }

  /** Creates a line with a field, its name and its description. */
  private line(id: string, name: string, field: HTMLElement, doc = ''): HTMLElement {
    field.id = id;
    this.count += 1;
    const value = field instanceof HTMLInputElement && field.type === 'range' ? ` ${field.value}` : '';
    const line = element(
      'div',
      { class: 'field' },
      element('label', { for: id }, name.replaceAll('_', ' ') + value),
      field,
    );
    if (doc !== '') {
      // Names in descriptions are in backquotes.
      const parts = doc.split('`').map((part, at) => (at % 2 === 1 ? element('code', {}, part) : part));
      const note = element('small', { id: `note-${this.count}` }, ...parts);
      field.setAttribute('aria-describedby', note.id);
      line.append(note);
    }
    return line;
  }
}
