import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { until } from './until.ts';

/** Why the calls of a process cannot be watched here; `null` when they can. */
export const cannotTrace: string | null = (() => {
  try {
    execFileSync('strace', ['-f', '-o', '/dev/null', 'true'], { stdio: 'ignore' });
    return null;
  } catch {
    return 'strace may not trace a process';
  }
})();

/** What is watched: everything that makes a write durable or visible, and the answers. */
const CALLS = 'fsync,fdatasync,rename,renameat,renameat2,link,linkat,unlink,unlinkat,write,writev,pwrite64';
const TEXT_BYTES = 24;

/** The system calls of a running process, in the order in which they were answered; paths stand for descriptors. */
export class SyscallTrace {
  readonly #strace: ChildProcess;
  readonly #file: string;

  private constructor(strace: ChildProcess, file: string) {
    this.#strace = strace;
    this.#file = file;
  }

  /** Resolves when every thread is watched. */
  static async of(pid: number, file: string): Promise<SyscallTrace> {
    const strace = spawn('strace', ['-f', '-y', '-s', String(TEXT_BYTES), '-e', `trace=${CALLS}`, '-o', file, '-p', String(pid)], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    await attached(strace);
    return new SyscallTrace(strace, file);
  }

  /** Ends the watching. @returns a line for each call: its text, with what came back. */
  async end(): Promise<readonly string[]> {
    const gone = new Promise((resolve) => this.#strace.once('exit', resolve));
    this.#strace.kill('SIGINT');
    await gone;
    return joined(readFileSync(this.#file, 'utf8').split('\n'));
  }
}

/**
 * A call that others interrupted is written in two parts; it counts where its second part stands. One that had not come back when the watching
 * ended, as that of an answer which is already read, has none and counts as the last.
 */
function joined(lines: readonly string[]): string[] {
  const begun = new Map<string, string>();
  const whole = lines.flatMap((line) => {
    const [, thread = '', text = ''] = /^(\d+)\s+(.*)$/.exec(line) ?? [];
    if (text.endsWith(' <unfinished ...>')) {
      begun.set(thread, text.slice(0, -' <unfinished ...>'.length));
      return [];
    }
    const resumed = /^<\.\.\. \w+ resumed>(.*)$/.exec(text)?.[1];
    if (resumed === undefined) return text === '' ? [] : [text];
    const first = begun.get(thread) ?? '';
    begun.delete(thread);
    return [first + resumed];
  });
  return [...whole, ...begun.values()];
}

export interface Injection {
  end(): Promise<void>;
}

/** Every sync of the file at `path` by a running process answers EIO from now on, and nothing is synced. Resolves when every thread is watched. */
export function failSyncs(pid: number, path: string): Promise<Injection> {
  const calls = 'fsync,fdatasync';
  return inject(pid, ['-P', path, '-e', `trace=${calls}`, '-e', `inject=${calls}:error=EIO`]);
}

/** Every rename by a running process takes so long from now on. Resolves when every thread is watched. */
export function slowRenames(pid: number, delayMs: number): Promise<Injection> {
  return inject(pid, ['-e', 'trace=rename', '-e', `inject=rename:delay_enter=${delayMs * 1_000}`]);
}

async function inject(pid: number, what: readonly string[]): Promise<Injection> {
  const strace = spawn('strace', ['-f', ...what, '-o', '/dev/null', '-p', String(pid)], { stdio: ['ignore', 'ignore', 'pipe'] });
  await attached(strace);
  const gone = new Promise((resolve) => strace.once('exit', resolve));
  return {
    end: async () => {
      if (strace.exitCode === null) strace.kill('SIGINT');
      await gone;
    },
  };
}

async function attached(strace: ChildProcess): Promise<void> {
  let said = '';
  strace.stderr?.on('data', (chunk: Buffer) => {
    said += chunk.toString();
  });
  await until(async () => {
    if (strace.exitCode !== null) throw new Error(`strace ended: ${said}`);
    return said.includes(' attached') ? true : null;
  });
}
