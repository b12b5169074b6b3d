import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { CliProcess } from './cli-process.ts';

export const BIN = fileURLToPath(new URL('../../bin/fencegate.cjs', import.meta.url));

export interface CommandResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** The command line as it is shipped, for one gateway, in one directory. Scripts find it as `fencegate`, too, by `path`. */
export class CommandLine {
  readonly directory: string;
  readonly environment: Readonly<Record<string, string>>;

  constructor(url: string, directory: string, environment: Readonly<Record<string, string>> = {}) {
    this.directory = directory;
    this.environment = { PATH: process.env['PATH'] ?? '', HOME: directory, FENCEGATE_URL: url, FENCEGATE: BIN, ...environment };
  }

  /** With further variables. */
  with(environment: Readonly<Record<string, string>>): CommandLine {
    return new CommandLine(this.environment['FENCEGATE_URL'] ?? '', this.directory, { ...this.environment, ...environment });
  }

  /** Ends with the test, by SIGKILL if need be. */
  start(...argv: readonly string[]): CliProcess {
    const process = new CliProcess([BIN, ...argv], this.environment, this.directory);
    onTestFinished(() => process.signal('SIGKILL'));
    return process;
  }

  async run(...argv: readonly string[]): Promise<CommandResult> {
    return this.runWith('', ...argv);
  }

  /** With something on standard input. */
  async runWith(input: string, ...argv: readonly string[]): Promise<CommandResult> {
    const process = this.start(...argv);
    process.child.stdin.end(input);
    const { code } = await process.ended();
    return { code, stdout: process.stdout, stderr: process.stderr };
  }

  /** The one JSON document that it prints. Throws with its complaint when it fails. */
  async json<T>(...argv: readonly string[]): Promise<T> {
    const { code, stdout, stderr } = await this.run(...argv, '--json');
    if (code !== 0) throw new Error(`exit code ${code}: ${stderr}`);
    return JSON.parse(stdout) as T;
  }
}
