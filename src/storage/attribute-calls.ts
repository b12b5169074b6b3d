import { type Descriptor, procFd } from './descriptor.ts';

/** Extended attributes of a held file or directory; a POSIX ACL is one of them. Short calls on a local disk, made on the caller's thread. */
export interface AttributeCalls {
  /** Throws ENOTSUP where the file system has no attributes. */
  names(of: Descriptor): readonly string[];
  /** `null` when there is none of that name, or the file system has none at all. */
  get(of: Descriptor, name: string): Buffer | null;
  set(of: Descriptor, name: string, value: Buffer): void;
  remove(of: Descriptor, name: string): void;
}

type Library = typeof import('fs-xattr');

/**
 * Node has no such calls. The library is native code and optional: without it a replaced file loses its attributes, and the start says so.
 * Only its synchronous calls are used: the others do not free what they allocate.
 */
async function loaded(): Promise<Library | null> {
  try {
    return await import('fs-xattr');
  } catch {
    return null;
  }
}

const ABSENT: ReadonlySet<unknown> = new Set(['ENODATA', 'ENOTSUP']);

function over(library: Library): AttributeCalls {
  return {
    names: (of) => library.listAttributesSync(procFd(of)),
    get: (of, name) => {
      try {
        return library.getAttributeSync(procFd(of), name);
      } catch (thrown) {
        if (ABSENT.has((thrown as NodeJS.ErrnoException).code)) return null;
        throw thrown;
      }
    },
    set: (of, name, value) => library.setAttributeSync(procFd(of), name, value),
    remove: (of, name) => library.removeAttributeSync(procFd(of), name),
  };
}

const library = await loaded();

/** `null` where the library is not installed. */
export const attributeCalls: AttributeCalls | null = library === null ? null : over(library);
