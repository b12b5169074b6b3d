import type { At } from './descriptor.ts';
import { errnoOf } from './errno.ts';
import type { VolumeRoom } from './room.ts';

const NO_LINK: ReadonlySet<string | null> = new Set(['EPERM', 'EMLINK', 'ENOTSUP']);

/** The file may not be linked, whatever else may be done: it is another owner's (`protected_hardlinks` of the kernel), or has as many links as there may be. */
export function mayNotBeLinked(thrown: unknown): boolean {
  return NO_LINK.has(errnoOf(thrown));
}

/** Gives a file its second name, or that name in the place of its first one. @returns whether it has both. */
export async function linkOrRename({ calls, hardLinks }: Pick<VolumeRoom, 'calls' | 'hardLinks'>, from: At, to: At): Promise<boolean> {
  if (hardLinks) {
    try {
      await calls.link(from, to);
      return true;
    } catch (thrown) {
      if (!mayNotBeLinked(thrown)) throw thrown;
    }
  }
  await calls.rename(from, to);
  return false;
}
