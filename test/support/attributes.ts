import { statSync } from 'node:fs';
import { getAttributeSync, listAttributesSync, setAttributeSync } from 'fs-xattr';
import { AttributeCalls } from '../../src/storage/attribute-calls.ts';

const USER_OBJ = 0x01;
const USER = 0x02;
const GROUP_OBJ = 0x04;
const MASK = 0x10;
const OTHER = 0x20;
const NO_ID = 0xffff_ffff;

/** One thread for all volumes that a test file makes by hand. */
export const testAttributes = new AttributeCalls(() => undefined);
// A thread opens descriptors while it starts, and tests count those of the process.
await testAttributes.begin({ kind: 'inherit', directory: '/proc', file: '/proc', mode: 0 }).done;

/** A POSIX ACL as `setfacl` would store it: one that lets the user `uid` read and write, or, for `null`, the three entries of a plain mode. */
export function aclWith(uid: number | null, { owner = 7, group = 5, mask = 7, other = 0 } = {}): Buffer {
  const named = uid === null ? [] : ([[USER, 6, uid]] as const);
  const masked = uid === null ? [] : ([[MASK, mask, NO_ID]] as const);
  const entries = [[USER_OBJ, owner, NO_ID], ...named, [GROUP_OBJ, group, NO_ID], ...masked, [OTHER, other, NO_ID]] as const;
  const acl = Buffer.alloc(4 + 8 * entries.length);
  acl.writeUInt32LE(2);
  for (const [index, [tag, rights, id]] of entries.entries()) {
    acl.writeUInt16LE(tag, 4 + 8 * index);
    acl.writeUInt16LE(rights, 6 + 8 * index);
    acl.writeUInt32LE(id, 8 + 8 * index);
  }
  return acl;
}

export const setAttribute: (path: string, name: string, value: Buffer | string) => void = setAttributeSync;

/** Mode, owner, and every extended attribute of a file. */
export function rightsOf(path: string): { readonly attributes: Record<string, string>; readonly [name: string]: unknown } {
  const { mode, uid, gid } = statSync(path);
  const names = listAttributesSync(path).sort();
  const attributes = Object.fromEntries(names.map((name) => [name, getAttributeSync(path, name).toString('hex')]));
  return { mode: (mode & 0o7777).toString(8), uid, gid, attributes };
}
