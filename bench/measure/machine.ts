import { cpus, loadavg, release, totalmem } from 'node:os';

export interface Machine {
  readonly cpu: string;
  readonly cpus: number;
  readonly memoryBytes: number;
  readonly kernel: string;
  readonly node: string;
  /** Average number of runnable processes in the minute before: what else the machine was doing. */
  readonly load: number;
}

/** To be called before the work begins, for the sake of `load`. */
export function machine(): Machine {
  const all = cpus();
  return {
    cpu: all[0]?.model ?? 'unknown',
    cpus: all.length,
    memoryBytes: totalmem(),
    kernel: release(),
    node: process.version,
    load: loadavg()[0] ?? 0,
  };
}
