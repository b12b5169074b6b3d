import type { At } from './descriptor.ts';
import { errnoOf } from './errno.ts';
import type { VolumeRoom } from './room.ts';

/** A file that may be renamed and not linked: of another owner (`protected_hardlinks` of the kernel), or with as many links as there may be. */
const NO_LINK: ReadonlySet<string | null> = new Set(['EPERM', 'EMLINK', 'ENOTSUP']);

/** Gives a file its second name, or that name in the place of its first one. @returns whether it has both. */
export async function linkOrRename({ calls, hardLinks }: Pick<VolumeRoom, 'calls' | 'hardLinks'>, from: At, to: At): Promise<boolean> {
  if (hardLinks) {
    try {
      await calls.link(from, to);
      return true;
    } catch (thrown) {
      if (!NO_LINK.has(errnoOf(thrown))) throw thrown;
    }
  }
  await calls.rename(from, to);
  return false;
}
