import { constants } from 'node:fs';
import { refuse } from '../../domain/errors.ts';
import { LIMITS } from '../../domain/limits.ts';
import { at, type Descriptor } from '../descriptor.ts';
import { errnoOf } from '../errno.ts';
import type { FileCalls } from '../file-calls.ts';
import { mountIdOf } from '../mount-id.ts';
import { openFresh } from '../open-fresh.ts';
import { O_PATH } from '../target-kind.ts';
import { OwnerUnreadable, readOwner } from './owner-file.ts';
import { StartRefused } from './start-report.ts';
import { CONTROL_DIRECTORY, OWNER_FILE } from './volume-names.ts';
import { OPEN_DIRECTORY } from './whole-file.ts';

/**
 * Volumes of other gateways around a volume and in it: one file would have two fences (trap F19). Whoever starts looks up, before it
 * marks its own root and again after that; whoever serves looks at each directory on the way down. Of two that start at once, at least one sees the other.
 */

/** Somebody's, who cannot be told. */
const UNREADABLE = 'another user or program';

/** A directory of which nothing but its names is looked up: the right to list it is not needed. */
const ABOVE = O_PATH | constants.O_DIRECTORY;

/** Throws `StartRefused` for a root that lies in a volume which is not of `gateway`. To the top, across mounts. */
export async function assertInNoOther(calls: FileCalls, root: Descriptor, gateway: string): Promise<void> {
  let here = root;
  try {
    for (let steps = 1; steps <= LIMITS.directoriesAboveMax; steps += 1) {
      const above = await calls.open(at(here, '..'), ABOVE);
      const [child, parent] = [await calls.fstat(here), await calls.fstat(above)];
      if (here !== root) await calls.close(here);
      here = above;
      // Above the top is the top.
      if (child.dev === parent.dev && child.ino === parent.ino) return;
      const owner = await ownerIn(calls, above);
      if (owner !== null && owner !== gateway) throw inside(owner, steps);
    }
  } finally {
    if (here !== root) await calls.close(here).catch(() => undefined); // nothing was written through it
  }
}

/** The directory is named as seen from the root of the volume: a reason has no path of the machine. */
function inside(owner: string, steps: number): StartRefused {
  const marker = `${'../'.repeat(steps)}${CONTROL_DIRECTORY}`;
  return new StartRefused(
    'inside_another',
    `It lies in a volume of ${owner} (${marker}/${OWNER_FILE}, as seen from it), and one file would have two fences. ` +
      `Choose a directory outside of that one; or, if its owner is gone for good, remove ${marker} and start this gateway again.`,
  );
}

/**
 * For the walks of an open volume: throws `cross_volume` for a directory on another mount than `root`, and for one that is the root of a volume which is
 * not of `gateway`. A directory that is none is looked at once: whoever would make one of it later looks up at its start, and finds ours.
 */
export function refusingOthers(calls: FileCalls, root: Descriptor, gateway: string): (directory: Descriptor) => Promise<void> {
  const mount = mountIdOf(root);
  const clear = new Set<bigint>();
  return async (directory) => {
    // Each time: it may be mounted at any moment, and its inode is that of a directory of ours.
    if (mountIdOf(directory) !== mount) throw refuse('cross_volume', 'Something else is mounted in the path.');
    const { ino } = await calls.fstat(directory);
    if (clear.has(ino)) return;
    const owner = await ownerIn(calls, directory);
    if (owner !== null && owner !== gateway) throw refuse('cross_volume', 'The path lies in a volume of another gateway.');
    if (clear.size >= LIMITS.clearDirectoriesMax) clear.clear();
    clear.add(ino);
  };
}

/** Whose volume begins at this directory; `null`: nobody's. */
async function ownerIn(calls: FileCalls, directory: Descriptor): Promise<string | null> {
  let control: Descriptor;
  try {
    control = await openFresh(calls, at(directory, CONTROL_DIRECTORY), OPEN_DIRECTORY);
  } catch (thrown) {
    const errno = errnoOf(thrown);
    if (errno === 'ENOENT' || errno === 'ENOTDIR' || errno === 'ELOOP') return null;
    if (errno !== 'EACCES') throw thrown;
    // It is there and not for us to open; or the directory itself is not for us to search, and then nothing can be told.
    return calls.lstat(at(directory, CONTROL_DIRECTORY)).then(
      () => UNREADABLE,
      () => null,
    );
  }
  try {
    return (await readOwner(calls, control))?.owner ?? null;
  } catch (thrown) {
    if (thrown instanceof OwnerUnreadable || errnoOf(thrown) === 'EACCES') return UNREADABLE;
    throw thrown;
  } finally {
    await calls.close(control).catch(() => undefined); // nothing was written through it
  }
}
