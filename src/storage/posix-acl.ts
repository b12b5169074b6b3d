/** POSIX ACLs as the kernel hands them out (linux/posix_acl_xattr.h): 4 bytes of version, then entries of tag, permissions and id. */
export const ACCESS_ACL = 'system.posix_acl_access';
export const DEFAULT_ACL = 'system.posix_acl_default';

const HEADER_BYTES = 4;
const ENTRY_BYTES = 8;
const USER_OBJ = 0x01;
const GROUP_OBJ = 0x04;
const MASK = 0x10;
const OTHER = 0x20;

/**
 * The access ACL of a file that is made with `mode` in a directory with the default ACL `acl`: the mode takes rights away from the owner, from
 * the mask (from the group where there is no mask) and from others; the umask does not count (acl(5)).
 */
export function inheritedAcl(acl: Buffer, mode: number): Buffer {
  const made = Buffer.from(acl);
  const hasMask = entries(made).some((entry) => made.readUInt16LE(entry) === MASK);
  for (const entry of entries(made)) {
    const allowed = allowedBy(mode, made.readUInt16LE(entry), hasMask);
    made.writeUInt16LE(made.readUInt16LE(entry + 2) & allowed, entry + 2);
  }
  return made;
}

function entries(acl: Buffer): number[] {
  const count = Math.floor((acl.byteLength - HEADER_BYTES) / ENTRY_BYTES);
  return Array.from({ length: Math.max(0, count) }, (_, index) => HEADER_BYTES + index * ENTRY_BYTES);
}

function allowedBy(mode: number, tag: number, hasMask: boolean): number {
  if (tag === USER_OBJ) return (mode >> 6) & 7;
  if (tag === OTHER) return mode & 7;
  if (tag === MASK || (tag === GROUP_OBJ && !hasMask)) return (mode >> 3) & 7;
  return 7;
}
