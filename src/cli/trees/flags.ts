import { type Command, InvalidArgumentError } from 'commander';
import { durationMs } from '../durations.ts';

/** Hands a command to the one place that runs it and turns what it throws into an exit code. Default: it reads. */
export type Run = (command: () => Promise<number>, does?: 'reads' | 'writes') => Promise<void>;

export const JSON_FLAG = 'print JSON, for scripts';

export function withConnection(command: Command): Command {
  return command
    .option('--gateway <url>', 'where the gateway listens (FENCEGATE_URL; http://127.0.0.1:8080)')
    .option('--auth-token-file <file>', 'file with the bearer token, in place of FENCEGATE_AUTH_TOKEN')
    .option('--client-id <label>', 'what others see of us; default user@host');
}

/** The same with `--json`. */
export function withAnswer(command: Command): Command {
  return withConnection(command.option('--json', JSON_FLAG));
}

/** For `argParser`: `30s`, `500ms`, `5m` as ms. */
export function duration(text: string): number {
  const ms = durationMs(text);
  if (ms === null) throw new InvalidArgumentError('Write a duration as 30s, 500ms or 5m.');
  return ms;
}

/** For `argParser`: a whole number within the bounds. */
export function wholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const number = /^[0-9]{1,9}$/.test(text) ? Number(text) : Number.NaN;
    if (!(number >= least && number <= most)) throw new InvalidArgumentError(`Write a number from ${least} to ${most}.`);
    return number;
  };
}

/** A command that is only there for those below it. */
export function group(program: Command, name: string, description: string, ...lines: readonly string[]): Command {
  return program
    .command(name)
    .description(description)
    .addHelpText('after', examples(...lines));
}

export function examples(...lines: readonly string[]): string {
  return `\nExamples:\n${lines.map((line) => `  $ ${line}`).join('\n')}`;
}
