import { LIMITS } from '../domain/limits.ts';
import { errnoOf } from './errno.ts';
import { ACCESS_ACL, DEFAULT_ACL, inheritedAcl } from './posix-acl.ts';

/** What is done with extended attributes, a POSIX ACL being one of them (trap F27). The calls are synchronous, so what may hang runs in a thread of its own. */

/** The package `fs-xattr`, as far as it is used: its other calls do not free what they allocate. */
export interface AttributeLibrary {
  listAttributesSync(path: string): string[];
  getAttributeSync(path: string, name: string): Buffer;
  setAttributeSync(path: string, name: string, value: Buffer): void;
  removeAttributeSync(path: string, name: string): void;
}

/** Paths lead to held descriptors (`descriptor.ts`). */
export type AttributeJob =
  /** `to` gets the attributes of `from`, as far as that is allowed. */
  | { readonly kind: 'carry'; readonly from: string; readonly to: string }
  /** `file` gets the ACL of a file that is made in `directory` with `mode`. */
  | { readonly kind: 'inherit'; readonly directory: string; readonly file: string; readonly mode: number }
  /** What is made in `directory` gets no ACL from it. */
  | { readonly kind: 'pass_nothing_on'; readonly directory: string };

/** Of all attributes those that are about the file and not about its bytes: capabilities and integrity hashes belong to what was in it. */
const CARRIED: readonly RegExp[] = [
  /^user[.]/,
  /^trusted[.](?!overlay[.])/,
  /^system[.]posix_acl_access$/,
  // The ACL of a file on an NFS 4 mount, which has no POSIX ACL.
  /^system[.]nfs4_acl$/,
  /^security[.]selinux$/,
  /^security[.]SMACK64/,
];
/** There is none of that name, the file system has none at all, or it was changed while it was read. */
const NOT_TO_BE_HAD: ReadonlySet<string | null> = new Set(['ENODATA', 'ENOTSUP', 'ENOSYS', 'EINVAL', 'EPERM', 'EACCES', 'ERANGE']);
/** Where the gateway may not set an attribute, or the file system does not take it, the file goes without, as with `cp --preserve=all`. */
const NOT_TAKEN: ReadonlySet<string | null> = new Set(['EPERM', 'EACCES', 'ENOTSUP', 'ENOSYS', 'EINVAL', 'ERANGE', 'E2BIG']);

/** @returns how many attributes the file should have and does not. Throws what is a failure of the volume and no answer about an attribute. */
export function doJob(library: AttributeLibrary, job: AttributeJob): number {
  switch (job.kind) {
    case 'carry':
      return carry(library, job.from, job.to);
    case 'inherit': {
      const acl = attributeOf(library, job.directory, DEFAULT_ACL);
      return acl === null || isTaken(library, job.file, ACCESS_ACL, inheritedAcl(acl, job.mode)) ? 0 : 1;
    }
    case 'pass_nothing_on':
      if (attributeOf(library, job.directory, DEFAULT_ACL) !== null) library.removeAttributeSync(job.directory, DEFAULT_ACL);
      return 0;
  }
}

/** Whether there is anything to set or to remove. */
export function hasWork(library: AttributeLibrary, job: AttributeJob): boolean {
  return job.kind === 'carry' ? namesOf(library, job.from).length > 0 : attributeOf(library, job.directory, DEFAULT_ACL) !== null;
}

function carry(library: AttributeLibrary, from: string, to: string): number {
  const names = namesOf(library, from);
  let notCarried = Math.max(0, names.length - LIMITS.attributesCarriedMax);
  for (const name of names.slice(0, LIMITS.attributesCarriedMax)) {
    const value = attributeOf(library, from, name);
    if (value === null || !isTaken(library, to, name, value)) notCarried += 1;
  }
  return notCarried;
}

function namesOf(library: AttributeLibrary, path: string): readonly string[] {
  const names = answered(() => library.listAttributesSync(path), NOT_TO_BE_HAD) ?? [];
  return names.filter((name) => CARRIED.some((carried) => carried.test(name)));
}

function attributeOf(library: AttributeLibrary, path: string, name: string): Buffer | null {
  return answered(() => library.getAttributeSync(path, name), NOT_TO_BE_HAD);
}

function isTaken(library: AttributeLibrary, path: string, name: string, value: Buffer): boolean {
  const taken = answered(() => {
    library.setAttributeSync(path, name, value);
    return true;
  }, NOT_TAKEN);
  return taken !== null;
}

/** `null`: the answer was one of `refusals`. */
function answered<T>(call: () => T, refusals: ReadonlySet<string | null>): T | null {
  try {
    return call();
  } catch (thrown) {
    if (refusals.has(errnoOf(thrown))) return null;
    throw thrown;
  }
}
