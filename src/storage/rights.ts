/** What a file keeps when its inode is replaced (trap F27): owner, mode, ACL, extended attributes (`attribute-jobs.ts`); and what a new file has from its directory. */
import { constants } from 'node:fs';
import type { TargetFacts } from '../domain/file-facts.ts';
import type { At, Descriptor } from './descriptor.ts';
import { errnoOf } from './errno.ts';
import type { FileCalls } from './file-calls.ts';
import { O_PATH } from './target-kind.ts';

type Rights = Pick<TargetFacts, 'mode' | 'uid' | 'gid'>;

/** New files are made like any program's: read and write for all, less the process's umask (0644 with the usual one). */
export const NEW_FILE_MODE = 0o666;
const SET_GROUP_ID = 0o2000n;
/** All but the set-id bits. */
const PLAIN_BITS = 0o1777;

/** Gives `file` the rights and attributes of what it will replace at `target`. */
export async function carryOver(calls: FileCalls, file: Descriptor, replaces: Rights, target: At): Promise<void> {
  const replaced = calls.keepsAttributes ? await openIfThere(calls, target) : null;
  try {
    await carryRights(calls, file, replaces, replaced);
  } finally {
    // Nothing was written through it.
    if (replaced !== null) await calls.close(replaced).catch(() => undefined);
  }
}

/** `null`: somebody beside the gateway has just removed it. */
async function openIfThere(calls: FileCalls, target: At): Promise<Descriptor | null> {
  try {
    return await calls.open(target, O_PATH | constants.O_NOFOLLOW);
  } catch (thrown) {
    if (errnoOf(thrown) === 'ENOENT') return null;
    throw thrown;
  }
}

/** Owner before mode, because a change of owner clears the set-id bits; mode before the ACL, of which it is a part. */
export async function carryRights(calls: FileCalls, file: Descriptor, rights: Rights, from: Descriptor | null): Promise<void> {
  const own = await calls.fstat(file);
  let mode = rights.mode;
  let chowned = false;
  if (own.uid !== BigInt(rights.uid) || own.gid !== BigInt(rights.gid)) {
    chowned = await chownIfAllowed(calls, file, rights.uid, rights.gid);
    // A gateway without that right owns what it writes; it must not hand its own identity out by a set-id bit.
    if (!chowned) mode &= PLAIN_BITS;
  }
  if (chowned || Number(own.mode & 0o7777n) !== mode) await calls.fchmod(file, mode);
  if (from !== null) await calls.carryAttributes(from, file);
}

/**
 * A file is made in the incarnation directory and takes its name later, so what the kernel does for a file that is made in `directory` is
 * done here: the group of a set-group-id directory, and its default ACL (acl(5), "Object creation and default ACLs").
 */
export async function inherit(calls: FileCalls, file: Descriptor, directory: Descriptor, mode: number | null): Promise<void> {
  const from = await calls.fstat(directory);
  if ((from.mode & SET_GROUP_ID) !== 0n) {
    const own = await calls.fstat(file);
    if (own.gid !== from.gid) await chownIfAllowed(calls, file, Number(own.uid), Number(from.gid));
  }
  if (mode !== null) await calls.fchmod(file, mode);
  await calls.inheritAcl(directory, file, mode ?? NEW_FILE_MODE);
}

/** False: only root may give files away, and only to a group that one is in. */
async function chownIfAllowed(calls: FileCalls, file: Descriptor, uid: number, gid: number): Promise<boolean> {
  try {
    await calls.fchown(file, uid, gid);
    return true;
  } catch (thrown) {
    if (errnoOf(thrown) !== 'EPERM') throw thrown;
    return false;
  }
}
