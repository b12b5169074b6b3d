import type { Environment } from '../config/environment.ts';
import { outliveStandardError, sayOnStandardError } from './standard-error.ts';
import { outliveStandardOutput } from './standard-output.ts';

/** Where a command writes: results on standard output, everything else on standard error. */
export interface Screen {
  /** As it is, without a line end of its own. */
  out(text: string): void;
  /** One line for people. */
  note(line: string): void;
  /** Whether standard output goes to people who see colours. */
  readonly colour: boolean;
  /** Whether standard error goes to a terminal: progress is shown there. */
  readonly progress: boolean;
}

/** The standard streams. Colours only on a terminal, and not with `NO_COLOR` (no-color.org) or `TERM=dumb`. */
export function screenOfProcess(environment: Environment): Screen {
  outliveStandardError();
  outliveStandardOutput();
  const plain = (environment['NO_COLOR'] ?? '') !== '' || environment['TERM'] === 'dumb';
  return {
    out: (text) => void process.stdout.write(text),
    note: sayOnStandardError,
    colour: process.stdout.isTTY === true && !plain,
    progress: process.stderr.isTTY === true && environment['TERM'] !== 'dumb',
  };
}

/** One JSON document on one line. */
export function outJson(screen: Screen, value: unknown): void {
  screen.out(`${JSON.stringify(value)}\n`);
}
