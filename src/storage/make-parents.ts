import { refuse } from '../domain/errors.ts';
import { LIMITS } from '../domain/limits.ts';
import { at, type Descriptor } from './descriptor.ts';
import { classify, errnoOf } from './errno.ts';
import { removeMade } from './made-directories.ts';
import { type HeldPlace, type MadeDirectory, openDirectory, walk, walkTo } from './path-walk.ts';
import type { VolumeRoom } from './room.ts';

/**
 * Makes the missing directories of a place, each one durable before the next is made in it, and returns the place anew; the given
 * one is closed in every case. Directories carry no bytes and are exempt from the incarnation rule (`write-protocol.md`, Apply).
 * Somebody else making the same directory meanwhile is no error. What was made goes again when the rest certainly cannot be made.
 */
export async function makeParents(room: VolumeRoom, place: HeldPlace): Promise<HeldPlace> {
  let found = place;
  if (found.missing.length === 0) {
    // The parent was there when the place was found and may have been removed since: walk again.
    found.close();
    found = await walkTo(room, place.resource);
  }
  for (let tries = 1; found.missing.length > 0; tries += 1) {
    const made = await makeMissing(room, found);
    if (made !== null) return made;
    // Another write that failed has taken back what it had made, and it was empty until then.
    if (tries === LIMITS.parentsTriesMax) throw refuse('not_found', 'A parent directory was removed while it was being made.');
    found = await walkTo(room, place.resource);
  }
  return found;
}

/** `null`: a directory on the way was removed meanwhile. */
async function makeMissing(room: VolumeRoom, place: HeldPlace): Promise<HeldPlace | null> {
  const way = new Way(room, place);
  try {
    for (const segment of place.missing) if (!(await way.step(segment))) return null;
    const { dir, made } = way.handOver();
    return await walk(room, place.resource, { from: dir, parents: [], name: place.name, made });
  } catch (thrown) {
    if (classify(thrown, room.calls.local) !== 'unknown') await way.back();
    throw thrown;
  } finally {
    await way.close();
  }
}

/** The directories from the deepest that was there down to the one that is made now. */
class Way {
  readonly #room: VolumeRoom;
  readonly #place: HeldPlace;
  #dir: Descriptor;
  /** Those of our own making that nothing of somebody else's lies between. */
  #made: MadeDirectory[] = [];
  /** Made and not yet opened. */
  #new: string | null = null;

  constructor(room: VolumeRoom, place: HeldPlace) {
    this.#room = room;
    this.#place = place;
    this.#dir = place.deepest;
  }

  /** False: there is nothing any more to make it in. */
  async step(name: string): Promise<boolean> {
    const { calls, sync } = this.#room;
    const isOurs = await this.#make(name);
    if (isOurs === null) return false;
    await sync.sync(this.#dir);
    const next = await openDirectory(calls, this.#dir, name);
    if (next === null) return false;
    const above = this.#dir;
    this.#dir = next;
    this.#new = null;
    try {
      if (isOurs) this.#made.push({ name, own: await calls.fstat(next), parent: await calls.fstat(above) });
      else this.#made = [];
    } finally {
      await this.#leave(above);
    }
    return true;
  }

  /** Whether it is of our making; `null`: there is nothing any more to make it in. */
  async #make(name: string): Promise<boolean | null> {
    try {
      await this.#room.calls.mkdir(at(this.#dir, name));
      this.#new = name;
      return true;
    } catch (thrown) {
      const errno = errnoOf(thrown);
      if (errno === 'ENOENT') return null;
      if (errno !== 'EEXIST') throw thrown;
      return false;
    }
  }

  /** From here on the new place owns the descriptor. */
  handOver(): { readonly dir: Descriptor; readonly made: readonly MadeDirectory[] } {
    const dir = this.#dir;
    this.#dir = this.#place.deepest;
    return { dir, made: this.#made };
  }

  async back(): Promise<void> {
    const { calls } = this.#room;
    if (this.#new !== null) await calls.rmdir(at(this.#dir, this.#new)).catch(() => undefined); // as `removeMade`
    await removeMade(this.#room, this.#dir, this.#made);
  }

  async close(): Promise<void> {
    await this.#leave(this.#dir);
    this.#place.close();
  }

  async #leave(dir: Descriptor): Promise<void> {
    if (dir !== this.#place.deepest && dir !== this.#room.root) await this.#room.calls.close(dir).catch(() => undefined);
  }
}
