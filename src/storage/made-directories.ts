import { constants } from 'node:fs';
import { GatewayError } from '../domain/errors.ts';
import type { Intent } from '../domain/intent.ts';
import type { Resource } from '../domain/resource.ts';
import { at, type Descriptor } from './descriptor.ts';
import { type HeldPlace, type Identity, type MadeDirectory, walkTo } from './path-walk.ts';
import type { VolumeRoom } from './room.ts';

const DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/**
 * Removes what a write that did not happen has made, from the innermost outwards, as far as it is empty: what somebody else uses by now
 * is not, and `rmdir` refuses. Best effort; an empty directory that stays does no harm but holds an inode.
 */
export async function removeMade({ calls, inc }: VolumeRoom, innermost: Descriptor, made: readonly MadeDirectory[]): Promise<void> {
  let dir = innermost;
  const leave = async (): Promise<void> => {
    if (dir !== innermost) await calls.close(dir).catch(() => undefined); // a directory: nothing was written through it
  };
  try {
    // A successor has the volume, and what is on it is its own.
    if ((await calls.fstat(inc)).nlink === 0n) return;
    for (const { name, own, parent } of made.toReversed()) {
      const above = await calls.open(at(dir, '..'), DIRECTORY);
      await leave();
      dir = above;
      // Somebody may have moved it: then it is theirs.
      if (!isSame(await calls.fstat(above), parent) || !isSame(await calls.lstat(at(above, name)), own)) return;
      await calls.rmdir(at(above, name));
    }
  } catch {
    // Not empty, gone, or no answer.
  } finally {
    await leave();
  }
}

function isSame(a: Identity, b: Identity): boolean {
  return a.dev === b.dev && a.ino === b.ino;
}

/** The directories of writes that may still turn out not to have happened; an entry lives as long as its operation. */
export class MadeDirectories {
  readonly #room: VolumeRoom;
  readonly #open = new Map<string, { readonly resource: Resource; readonly made: readonly MadeDirectory[] }>();

  constructor(room: VolumeRoom) {
    this.#room = room;
  }

  /** Carries an apply out; when it is certain that it did not happen, what was made for it goes. */
  async around(intent: Intent, place: HeldPlace, apply: () => Promise<void>): Promise<void> {
    if (place.made.length === 0) return apply();
    // Of several files this one may be taken back later, with another one's failure.
    if (intent.plan.kind === 'several') this.#keep(intent, place);
    try {
      await apply();
    } catch (thrown) {
      if (!(thrown instanceof GatewayError) || thrown.code === 'outcome_unknown') this.#keep(intent, place);
      // A volume that cannot be used now is not touched for the sake of order.
      else if (thrown.code !== 'volume_unavailable') await removeMade(this.#room, place.deepest, place.made);
      throw thrown;
    }
  }

  /** The operation turned out not to have happened. */
  async undone(operationId: string): Promise<void> {
    const kept = this.#open.get(operationId);
    if (kept === undefined) return;
    this.#open.delete(operationId);
    try {
      const place = await walkTo(this.#room, kept.resource);
      await removeMade(this.#room, place.deepest, kept.made);
      place.close();
    } catch {
      // They cannot be found any more, so they are not ours to remove.
    }
  }

  /** Its outcome is known. */
  forget(operationId: string): void {
    this.#open.delete(operationId);
  }

  #keep({ operationId, resource }: Intent, { made }: HeldPlace): void {
    this.#open.set(operationId, { resource, made });
  }
}
