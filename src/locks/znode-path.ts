import { createHash } from 'node:crypto';
import type { Resource } from '../domain/resource.ts';

const NODE_NAME_BYTES_MAX = 1_000;
/** `/` parts names, `%` is the escape, the rest is what ZooKeeper refuses in a path. */
const UNSAFE = /[/%\p{Cc}\ud800-\uf8ff\ufff0-\u{10ffff}]/gu;

/**
 * The node of a resource under the lock root: one name, never a tree (nobody lists all of a volume). Where a volume folds names, all
 * spellings of a file are one node, as they are one fence. Pure.
 */
export function znodePath({ volume, key }: Resource, root = '/locks'): string {
  const path = key.slice(volume.length + 1);
  const encoded = path.replace(UNSAFE, (character) => encodeURIComponent(character));
  const name = Buffer.byteLength(encoded) > NODE_NAME_BYTES_MAX ? createHash('sha256').update(path).digest('hex') : encoded;
  return `${root}/${volume}/${name}`;
}

/** Where a contender stands: below the node of its first resource. */
export function contenderPath(resources: readonly Resource[], leaseRef: string, root = '/locks'): string {
  const [first] = resources;
  if (first === undefined) throw new Error('a lease has at least one resource');
  return `${znodePath(first, root)}/_c_${leaseRef}`;
}
