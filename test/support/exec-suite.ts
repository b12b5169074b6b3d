import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import type { CliProcess } from './cli-process.ts';
import { BIN } from './command-line.ts';
import { type CommandLineSuite, commandLineSuite } from './command-line-suite.ts';
import { until } from './until.ts';

/** A command line suite with what tests of `exec` see of the commands under it: they note things in files of the directory. */
export class ExecSuite {
  readonly lab: CommandLineSuite = commandLineSuite();
  #tests = 0;

  /** A resource of a test's own; `name` makes names of files that are its own, too. */
  next(): { readonly resource: string; readonly name: (of: string) => string } {
    this.#tests += 1;
    const number = this.#tests;
    return { resource: `v/r${number}.txt`, name: (of) => `${of}${number}` };
  }

  /** A shell script as the command. */
  exec(resource: string, script: string, ...flags: readonly string[]): CliProcess {
    return this.lab.cli.start('exec', '--lock', resource, ...flags, '--', 'sh', '-c', script);
  }

  /** With a standard error of the test's own, which nobody reads where it is a pipe. */
  execWith(stderr: 'pipe' | number, resource: string, script: string, ...flags: readonly string[]): ChildProcess {
    const { directory, cli } = this.lab;
    const child = spawn(process.execPath, [BIN, 'exec', '--lock', resource, ...flags, '--', 'sh', '-c', script], {
      cwd: directory,
      env: cli.environment,
      stdio: ['ignore', 'ignore', stderr],
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    return child;
  }

  /** Under `script`, which gives it a terminal of its own; what is written to its input is typed. */
  atTerminal(resource: string, command: string, ...flags: readonly string[]) {
    return this.atTerminalRun(`${process.execPath} ${BIN} exec --lock ${resource} ${flags.join(' ')} -- sh -c '${command}'`);
  }

  /** Any command line at a terminal of its own. */
  atTerminalRun(command: string) {
    const child = spawn('script', ['-qec', command, '/dev/null'], {
      cwd: this.lab.directory,
      env: this.lab.cli.environment,
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    // It may end before the last key.
    child.stdin.on('error', () => undefined);
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => (output += chunk));
    const ended = once(child, 'close').then(() => ({ code: child.exitCode, output }));
    return { type: (keys: string) => child.stdin.write(keys), ended, hangUp: () => child.kill('SIGKILL') };
  }

  async isFree(resource: string): Promise<boolean> {
    return (await this.lab.client.lock(resource)).holders.length === 0;
  }

  appeared(name: string): Promise<true> {
    return until(() => (existsSync(join(this.lab.directory, name)) ? true : null));
  }

  text(name: string): string {
    return readFileSync(join(this.lab.directory, name), 'utf8');
  }

  /** Times that a script noted, in ms. */
  times(name: string): number[] {
    return this.text(name).trim().split('\n').map(Number);
  }

  /** The pid that a script noted. The process ends with the test, whatever `exec` does about it. */
  async notedPid(name: string): Promise<number> {
    const file = join(this.lab.directory, name);
    const pid = await until(() => (existsSync(file) && Number(readFileSync(file, 'utf8'))) || null);
    onTestFinished(() => {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // As it should be.
      }
    });
    return pid;
  }
}

/** A process as the system sees it: `T` is stopped; `null` when there is none, or only what is left of it for its parent. */
function stateOf(pid: number): string | null {
  if (!existsSync(`/proc/${pid}`)) return null;
  const state = /^State:\s+(\S)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? null;
  return state === 'Z' ? null : state;
}

export const isGone = (pid: number): Promise<true> => until(() => (stateOf(pid) === null ? true : null));
export const isStopped = (pid: number): Promise<true> => until(() => (stateOf(pid) === 'T' ? true : null));

export function parentOf(pid: number): number {
  return Number(/^PPid:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
}
