import { cpus, release, totalmem } from 'node:os';

export interface Machine {
  readonly cpu: string;
  readonly cpus: number;
  readonly memoryBytes: number;
  readonly kernel: string;
  readonly node: string;
}

export function machine(): Machine {
  const all = cpus();
  return { cpu: all[0]?.model ?? 'unknown', cpus: all.length, memoryBytes: totalmem(), kernel: release(), node: process.version };
}
