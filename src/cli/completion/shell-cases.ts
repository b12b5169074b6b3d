import { type Completed, valued, valueText } from './completed-commands.ts';

/** The functions that the scripts for bash and zsh share: what may follow the commands and options that were typed so far. */
export function shellCases(commands: readonly Completed[]): string {
  const words = commands.map(({ path, words: known }) => branch(path, known.map(({ name }) => name).join(' ')));
  const options = commands.map(({ path, options: known }) => branch(path, known.map(({ name }) => name).join(' ')));
  const values = valued(commands).map(({ typed, value }) => branch(typed, valueText(value)));
  return [asked('_fencegate_words', words), asked('_fencegate_options', options), asked('_fencegate_value', values)].join('');
}

function asked(name: string, branches: readonly string[]): string {
  return `${name}() {
  case "$1" in
${branches.join('\n')}
  esac
}
`;
}

function branch(typed: string, answer: string): string {
  return `    '${typed}') echo '${answer}' ;;`;
}
