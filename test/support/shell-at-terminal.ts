import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';

/** A shell at a terminal of its own (`script`): what is typed, tabs included, goes through its line editor. */
export class ShellAtTerminal {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #gone: Promise<true>;
  #output = '';

  constructor(command: string, options: { readonly directory: string; readonly environment: Readonly<Record<string, string>> }) {
    const { directory, environment } = options;
    this.#child = spawn('script', ['-qec', command, '/dev/null'], { cwd: directory, env: { TERM: 'xterm', ...environment } });
    this.#gone = once(this.#child, 'close').then(() => true);
    this.#child.stdout.setEncoding('utf8').on('data', (text: string) => {
      this.#output += text;
    });
  }

  /** Types a line; resolves with what came until `mark` did, such as the next prompt. */
  async answer(keys: string, mark: RegExp): Promise<string> {
    this.#output = '';
    this.#child.stdin.write(keys);
    while (!mark.test(this.#output)) {
      const ended = await Promise.race([once(this.#child.stdout, 'data').then(() => false), this.#gone]);
      if (ended) throw new Error(`the shell has ended: ${this.#output}`);
    }
    return this.#output;
  }

  async end(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#gone;
  }
}
