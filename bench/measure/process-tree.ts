import { readdirSync, readFileSync, writeFileSync } from 'node:fs';

/** The kernel counts CPU time for /proc in these, whatever its own tick is. */
const TICKS_PER_SECOND = 100;

export interface Memory {
  readonly residentBytes: number;
  /** Highest since the process started or since `forgetPeaks`. */
  readonly peakBytes: number;
}

/** A server's process, or those of several, and everything they started, as the kernel accounts for it. */
export class ProcessTree {
  readonly #roots: readonly number[];

  constructor(...roots: readonly number[]) {
    this.#roots = roots;
  }

  /** User and system time of all processes, also of ended ones that their parent has waited for. Kernel threads (the file system's journal) are in nobody's account. */
  cpuSeconds(): number {
    let ticks = 0;
    for (const pid of this.#pids()) {
      const fields = statFields(pid);
      for (const index of [11, 12, 13, 14]) ticks += Number(fields?.[index] ?? 0);
    }
    return ticks / TICKS_PER_SECOND;
  }

  /** Sum over the processes; pages that they share count in each. */
  memory(): Memory {
    let residentBytes = 0;
    let peakBytes = 0;
    for (const pid of this.#pids()) {
      const status = readOrNull(`/proc/${pid}/status`) ?? '';
      residentBytes += kibibytes(status, 'VmRSS') * 1024;
      peakBytes += kibibytes(status, 'VmHWM') * 1024;
    }
    return { residentBytes, peakBytes };
  }

  /** From now on `peakBytes` is the peak since this call. */
  forgetPeaks(): void {
    for (const pid of this.#pids()) writeFileSync(`/proc/${pid}/clear_refs`, '5');
  }

  #pids(): readonly number[] {
    const children = new Map<number, number[]>();
    for (const name of readdirSync('/proc')) {
      const parent = /^\d+$/.test(name) ? Number(statFields(Number(name))?.[1] ?? 0) : 0;
      if (parent > 0) children.set(parent, [...(children.get(parent) ?? []), Number(name)]);
    }
    const tree = [...this.#roots];
    for (const pid of tree) tree.push(...(children.get(pid) ?? []));
    return tree;
  }
}

/** The fields of /proc/<pid>/stat after the name, which may hold spaces itself: state is 0, parent 1, utime 11. */
function statFields(pid: number): readonly string[] | null {
  const text = readOrNull(`/proc/${pid}/stat`);
  return text === null ? null : text.slice(text.lastIndexOf(')') + 2).split(' ');
}

function kibibytes(status: string, field: string): number {
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1] ?? 0);
}

/** `null` for a process that has ended meanwhile. */
function readOrNull(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}
