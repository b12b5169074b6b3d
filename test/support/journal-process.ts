import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { onTestFinished } from 'vitest';
import { childScript } from './child-bundle.ts';

/** A second process with a journal of its own, to be stopped, woken and killed by a test. */
export class JournalProcess {
  readonly child: ChildProcess;
  readonly lines: string[] = [];
  #wake: () => void = () => undefined;
  #ended = false;

  constructor(dataDirectory: string, mode: 'commit' | 'idle', takeoverAfterMs: number) {
    this.child = spawn(process.execPath, [childScript('journal-child'), dataDirectory, mode, String(takeoverAfterMs)], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    if (this.child.stdout !== null) {
      createInterface(this.child.stdout).on('line', (line) => {
        this.lines.push(line);
        this.#wake();
      });
    }
    this.child.once('exit', () => {
      this.#ended = true;
      this.#wake();
    });
    onTestFinished(() => void this.child.kill('SIGKILL'));
  }

  /** The next line (not yet taken by an earlier call) that begins with `start`. */
  async line(start: string): Promise<string> {
    for (;;) {
      const index = this.lines.findIndex((line) => line.startsWith(start));
      if (index >= 0) return this.lines.splice(0, index + 1).at(-1) ?? '';
      if (this.#ended) throw new Error(`the process ended without "${start}": ${this.lines.join(' | ')}`);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  async exited(): Promise<void> {
    if (!this.#ended) await once(this.child, 'exit');
  }

  signal(name: NodeJS.Signals): void {
    this.child.kill(name);
  }

  commitOnce(): void {
    this.child.stdin?.write('.');
  }
}
