/**
 * Command lines from one table per command: what is parsed, what --help prints and what an error
 * names are the same thing.
 */
import { parseArgs } from 'node:util';
import { parseChoice, UsageError } from './units.js';

export interface OptionSpec {
  /** Placeholder of the value in --help; absent for a switch. */
  readonly value?: string;
  readonly help: string;
  readonly default?: string;
  readonly repeat?: boolean;
}

export type OptionTable = Readonly<Record<string, OptionSpec>>;

export class CommandLine {
  readonly #values: Record<string, string | boolean | (string | boolean)[] | undefined>;

  /** @throws UsageError ERR_USAGE for an unknown option or a missing value. */
  constructor(table: OptionTable, argv: readonly string[]) {
    const options = Object.fromEntries(
      Object.entries({ ...table, help: { help: '' } }).map(([name, spec]: [string, OptionSpec]) => [
        name,
        {
          type: spec.value === undefined ? ('boolean' as const) : ('string' as const),
          multiple: spec.repeat ?? false,
        },
      ]),
    );
    try {
      const { values } = parseArgs({ args: [...argv], options, strict: true, allowPositionals: false });
      this.#values = { ...values };
    } catch (error) {
      throw new UsageError(
        'ERR_USAGE',
        `${(error as Error).message.split('. ')[0]} (--help lists the options)`,
      );
    }
    for (const [name, spec] of Object.entries(table)) this.#values[name] ??= spec.repeat ? [] : spec.default;
  }

  has(name: string): boolean {
    return this.#values[name] !== undefined && this.#values[name] !== false;
  }

  text(name: string): string | undefined {
    return this.#values[name] as string | undefined;
  }

  texts(name: string): readonly string[] {
    return this.#values[name] as string[];
  }

  /** @throws UsageError ERR_USAGE when the option was not given. */
  required(name: string): string {
    const value = this.text(name);
    if (value === undefined)
      throw new UsageError('ERR_USAGE', `--${name} is needed (--help lists the options)`);
    return value;
  }

  /** The value as `parse` reads it, which is told the option's name; undefined when not given. */
  parsed<T>(name: string, parse: (text: string, where: string) => T): T | undefined {
    const value = this.text(name);
    return value === undefined ? undefined : parse(value, `--${name}`);
  }

  oneOf<T extends string>(name: string, choices: readonly T[]): T {
    return parseChoice(this.required(name), `--${name}`, choices);
  }
}

/** The option part of a help text, two aligned columns. */
export function describeOptions(table: OptionTable): string {
  const rows = Object.entries(table).map(
    ([name, spec]) =>
      [
        `  --${name}${spec.value === undefined ? '' : ` ${spec.value}`}`,
        `${spec.help}${spec.repeat ? ' (may be repeated)' : ''}${spec.default === undefined ? '' : ` [${spec.default}]`}`,
      ] as const,
  );
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `${left.padEnd(width)}  ${right}`).join('\n');
}

/**
 * Run a command's main: a usage error ends it with code 2, any other with 1, both with one line on
 * stderr.
 */
export async function runCommand(name: string, main: (argv: string[]) => Promise<number>): Promise<void> {
  try {
    process.exitCode = await main(process.argv.slice(2));
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException;
    process.stderr.write(`${name}: ${message}${code === undefined ? '' : ` [${code}]`}\n`);
    process.exitCode = error instanceof UsageError ? 2 : 1;
  }
}
