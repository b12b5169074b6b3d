import { lstatSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Everything below a directory, file by file: inode, size, mtime and bytes. Two equal trees: nobody wrote in between. */
export function treeOf(directory: string, below = ''): string[] {
  return readdirSync(join(directory, below)).sort().flatMap((name) => {
    const path = join(below, name);
    // The stamp is refreshed by whoever serves the volume.
    if (path === join('.fencegate', 'stamp')) return [];
    const facts = lstatSync(join(directory, path), { bigint: true });
    if (facts.isDirectory()) return [`${path}/`, ...treeOf(directory, path)];
    return [`${path} ${facts.ino} ${facts.size} ${facts.mtimeNs} ${readFileSync(join(directory, path)).toString('base64')}`];
  });
}
