import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';

/** A command of ours as a process of its own, with nothing of the test's environment but what is given. */
export class CliProcess {
  readonly child: ChildProcessWithoutNullStreams;
  stdout = '';
  stderr = '';
  readonly #exit: Promise<unknown[]>;

  constructor(command: readonly string[], environment: Readonly<Record<string, string>>, directory: string) {
    this.child = spawn(process.execPath, [...command], { env: { ...environment }, cwd: directory });
    this.#exit = once(this.child, 'close');
    this.child.stdout.setEncoding('utf8').on('data', (text: string) => {
      this.stdout += text;
    });
    this.child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text;
    });
  }

  /** Resolves when standard output has `text`; rejects when the process ends without it. */
  async says(text: string, times = 1): Promise<void> {
    while (this.stdout.split(text).length <= times) {
      const ended = await Promise.race([once(this.child.stdout, 'data').then(() => false), this.#exit.then(() => true)]);
      if (ended && this.stdout.split(text).length <= times) throw new Error(`ended without saying ${text}: ${this.stdout}${this.stderr}`);
    }
  }

  /** What `says` found, as the JSON object of its log line. */
  line(text: string): Record<string, unknown> {
    const line = this.stdout.split('\n').find((candidate) => candidate.includes(text));
    return JSON.parse(line ?? '{}') as Record<string, unknown>;
  }

  signal(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  async ended(): Promise<{ readonly code: number | null; readonly signal: string | null }> {
    await this.#exit;
    return { code: this.child.exitCode, signal: this.child.signalCode };
  }
}
