import { readFile, realpath, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { isBelow, type Mount, mountOf, parseMountInfo } from './mount-table.ts';

/**
 * Volumes that overlap would give one file two fences (trap F19), so a start with two of them is refused: the same directory, one
 * above the other, the same by device and inode, or one reached through a bind mount of a part of the other.
 */
export interface Overlap {
  readonly first: string;
  readonly second: string;
  readonly why: 'same_directory' | 'one_inside_the_other';
}

interface Located {
  readonly name: string;
  /** Device and inode of the directory itself, then of each one above it. */
  readonly chain: readonly string[];
  /** Device of the file system and path in it, which a bind mount does not change; `null` when the mount was not found. */
  readonly inside: { readonly device: string; readonly path: string } | null;
}

/** Rejects with the system's error when a path cannot be resolved; such a volume is not served and must not be passed in. */
export async function findOverlaps(volumes: readonly { readonly name: string; readonly path: string }[], mountInfo?: string): Promise<Overlap[]> {
  const mounts = parseMountInfo(mountInfo ?? (await readFile('/proc/self/mountinfo', 'utf8')));
  const located: Located[] = [];
  for (const volume of volumes) located.push(await locate(volume, mounts));
  const overlaps: Overlap[] = [];
  for (const [index, a] of located.entries()) {
    for (const b of located.slice(index + 1)) {
      const why = relation(a, b);
      if (why !== null) overlaps.push({ first: a.name, second: b.name, why });
    }
  }
  return overlaps;
}

function relation(a: Located, b: Located): Overlap['why'] | null {
  const [ownA, ownB] = [a.chain[0] ?? '', b.chain[0] ?? ''];
  if (ownA === ownB) return 'same_directory';
  if (a.chain.includes(ownB) || b.chain.includes(ownA)) return 'one_inside_the_other';
  if (a.inside === null || b.inside === null || a.inside.device !== b.inside.device) return null;
  if (a.inside.path === b.inside.path) return 'same_directory';
  return isBelow(a.inside.path, b.inside.path) || isBelow(b.inside.path, a.inside.path) ? 'one_inside_the_other' : null;
}

async function locate({ name, path }: { readonly name: string; readonly path: string }, mounts: readonly Mount[]): Promise<Located> {
  const real = await realpath(path);
  const chain: string[] = [];
  for (let at = real; ; at = dirname(at)) {
    const { dev, ino } = await stat(at, { bigint: true });
    chain.push(`${dev}:${ino}`);
    if (at === dirname(at)) break;
  }
  return { name, chain, inside: insideFileSystem(real, mounts) };
}

export function insideFileSystem(path: string, mounts: readonly Pick<Mount, 'device' | 'root' | 'point'>[]): { device: string; path: string } | null {
  const best = mountOf(path, mounts);
  if (best === null) return null;
  const rest = best.point === '/' ? path : path.slice(best.point.length);
  const joined = `${best.root === '/' ? '' : best.root}${rest === '/' ? '' : rest}`;
  return { device: best.device, path: joined === '' ? '/' : joined };
}
