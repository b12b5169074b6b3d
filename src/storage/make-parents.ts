import { refuse } from '../domain/errors.ts';
import { at } from './descriptor.ts';
import { errnoOf } from './errno.ts';
import { type HeldPlace, openDirectory, walk, walkTo } from './path-walk.ts';
import type { VolumeRoom } from './room.ts';

/**
 * Makes the missing directories of a place, each one durable before the next is made in it, and returns the place anew; the given
 * one is closed in every case. Directories carry no bytes and are exempt from the incarnation rule (`write-protocol.md`, Apply).
 * Somebody else making the same directory meanwhile is no error.
 */
export async function makeParents(room: VolumeRoom, place: HeldPlace): Promise<HeldPlace> {
  if (place.missing.length > 0) return makeMissing(room, place);
  // The parent was there when the place was found and may have been removed since: walk again.
  place.close();
  const again = await walkTo(room, place.resource);
  return again.missing.length > 0 ? makeMissing(room, again) : again;
}

async function makeMissing(room: VolumeRoom, place: HeldPlace): Promise<HeldPlace> {
  const { calls } = room;
  let dir = place.deepest;
  try {
    for (const segment of place.missing) {
      try {
        await calls.mkdir(at(dir, segment));
      } catch (thrown) {
        if (errnoOf(thrown) !== 'EEXIST') throw thrown;
      }
      await room.sync.sync(dir);
      const next = await openDirectory(calls, dir, segment);
      if (next === null) throw refuse('not_found', 'A parent directory was removed while it was being made.');
      if (dir !== place.deepest && dir !== room.root) await calls.close(dir).catch(() => undefined);
      dir = next;
    }
    // From here on the new place owns the descriptor; this walk takes no step and only reads its identity.
    const made = dir;
    dir = place.deepest;
    return await walk(room, place.resource, { from: made, parents: [], name: place.name });
  } finally {
    if (dir !== place.deepest && dir !== room.root) await calls.close(dir).catch(() => undefined);
    place.close();
  }
}
