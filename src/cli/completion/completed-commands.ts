import type { Command, Option as CommandOption } from 'commander';

/** What stands after an option: nothing, the name of a file, one of a few words, or what no shell can know. */
export type Value = 'none' | 'file' | 'text' | readonly string[];

export interface CompletedOption {
  /** With its dashes. */
  readonly name: string;
  readonly description: string;
  readonly value: Value;
}

/** One command of the tree: how it is reached (empty for the program itself), and what may follow. */
export interface Completed {
  readonly path: string;
  /** Subcommands, or the words of an argument that has only a few. */
  readonly words: readonly { readonly name: string; readonly description: string }[];
  readonly options: readonly CompletedOption[];
}

/** The program and all its commands. */
export function completedCommands(program: Command): Completed[] {
  return below(program, '');
}

/** What a shell is told of a value: `:file`, `:text`, or the words; nothing for an option without one. */
export function valueText(value: Value): string {
  if (value === 'none') return '';
  return typeof value === 'string' ? `:${value}` : value.join(' ');
}

/** Every option that takes a value, by the command and the option as they are typed. */
export function valued(commands: readonly Completed[]): { readonly typed: string; readonly value: Value }[] {
  return commands.flatMap(({ path, options }) =>
    options.flatMap(({ name, value }) => (value === 'none' ? [] : [{ typed: `${path} ${name}`.trim(), value }])),
  );
}

function below(command: Command, path: string): Completed[] {
  const help = command.createHelp();
  const subcommands = help.visibleCommands(command);
  const choices = command.registeredArguments.flatMap(({ argChoices = [] }) => argChoices);
  const words = [
    ...subcommands.map((one) => ({ name: one.name(), description: one.description() })),
    ...choices.map((name) => ({ name, description: '' })),
  ];
  const options = help
    .visibleOptions(command)
    .flatMap((option) =>
      typeof option.long === 'string' ? [{ name: option.long, description: option.description, value: valueAfter(option) }] : [],
    );
  const inner = subcommands.filter((one) => one.name() !== 'help').flatMap((one) => below(one, `${path} ${one.name()}`.trim()));
  return [{ path, words, options }, ...inner];
}

function valueAfter({ flags, argChoices, required }: CommandOption): Value {
  if (argChoices !== undefined) return argChoices;
  if (!required) return 'none';
  return flags.includes('<file>') ? 'file' : 'text';
}
