import type { BigIntStats } from 'node:fs';
import type { TargetFacts, TargetKind } from '../domain/file-facts.ts';

/** Names a file without opening it: no permission needed, no device driver woken, no writer of a FIFO let through. Node has no name for it. */
export const O_PATH = 0o10000000;

export function kindOf(stats: BigIntStats): TargetKind {
  if (stats.isFile()) return 'file';
  if (stats.isDirectory()) return 'directory';
  return stats.isSymbolicLink() ? 'symbolic_link' : 'special';
}

export function factsOf(stats: BigIntStats): TargetFacts {
  return {
    kind: kindOf(stats),
    ino: stats.ino,
    sizeBytes: Number(stats.size),
    mtimeNs: stats.mtimeNs,
    links: Number(stats.nlink),
    mode: Number(stats.mode & 0o7777n),
    uid: Number(stats.uid),
    gid: Number(stats.gid),
  };
}
