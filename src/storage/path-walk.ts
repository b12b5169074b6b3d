import { constants } from 'node:fs';
import { refuse } from '../domain/errors.ts';
import { isHiddenSegment, type Resource } from '../domain/resource.ts';
import type { Place } from '../domain/volume.ts';
import { at, type Descriptor } from './descriptor.ts';
import { errnoOf } from './errno.ts';
import type { FileCalls } from './file-calls.ts';
import { assertNoAlias } from './name-alias.ts';
import { openFresh } from './open-fresh.ts';
import type { VolumeRoom } from './room.ts';
import { kindOf, O_PATH } from './target-kind.ts';

const DIRECTORY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

export interface Identity {
  readonly dev: bigint;
  readonly ino: bigint;
}

/** A directory that a write made on the way to its target. */
export interface MadeDirectory {
  readonly name: string;
  readonly own: Identity;
  readonly parent: Identity;
}

/**
 * A name below a directory that is held open. `dir` is `null` when the parent does not exist; then `deepest` is the last directory
 * that does, and `missing` the names from there on to the parent.
 */
export class HeldPlace implements Place {
  readonly resource: Resource;
  readonly parent: Identity | null;
  readonly name: string;
  readonly deepest: Descriptor;
  readonly missing: readonly string[];
  /** Parents that were made for this place; none when it was only found. */
  readonly made: readonly MadeDirectory[];
  readonly #room: VolumeRoom;

  constructor(
    room: VolumeRoom,
    resource: Resource,
    found: {
      deepest: Descriptor;
      missing: readonly string[];
      name: string;
      parent: Identity | null;
      made?: readonly MadeDirectory[];
    },
  ) {
    this.#room = room;
    this.resource = resource;
    this.deepest = found.deepest;
    this.missing = found.missing;
    this.name = found.name;
    this.parent = found.parent;
    this.made = found.made ?? [];
  }

  get dir(): Descriptor | null {
    return this.parent === null ? null : this.deepest;
  }

  /** The name to address in calls. Throws `not_found` when the parent is missing. */
  get at(): { readonly dir: Descriptor; readonly name: string } {
    if (this.parent === null) throw refuse('not_found', 'The parent directory does not exist.');
    return { dir: this.deepest, name: this.name };
  }

  close(): void {
    void closeBelowRoot(this.#room, this.deepest);
  }
}

/** Of this room's own making; anything else is a mistake in the program. */
export function held(place: Place): HeldPlace {
  if (!(place instanceof HeldPlace)) throw new Error('a place of another volume was passed in');
  return place;
}

/** The root's descriptor belongs to the volume; every other one to whoever walked to it. */
export async function closeBelowRoot(room: Pick<VolumeRoom, 'calls' | 'root'>, directory: Descriptor): Promise<void> {
  // A directory's descriptor holds no data: a failing close of it loses nothing.
  if (directory !== room.root) await room.calls.close(directory).catch(() => undefined);
}

/**
 * Opens one directory below a held one without following a link (trap F18).
 * @returns `null` when there is nothing of that name. Rejects with `symbolic_link` or `not_a_directory`.
 */
export async function openDirectory(calls: FileCalls, parent: Descriptor, name: string): Promise<Descriptor | null> {
  try {
    return await openFresh(calls, at(parent, name), DIRECTORY);
  } catch (thrown) {
    const errno = errnoOf(thrown);
    if (errno === 'ENOENT') return null;
    if (errno !== 'ENOTDIR' && errno !== 'ELOOP') throw thrown;
    // Linux says ENOTDIR for a link as well; only the thing itself tells.
    const thing = await calls.open(at(parent, name), O_PATH | constants.O_NOFOLLOW);
    try {
      const isLink = kindOf(await calls.fstat(thing)) === 'symbolic_link';
      throw isLink
        ? refuse('symbolic_link', 'A part of the path is a symbolic link.')
        : refuse('not_a_directory', 'A part of the path is not a directory.');
    } finally {
      await calls.close(thing).catch(() => undefined);
    }
  }
}

/**
 * Walks from the root to the parent of `resource`, one held directory at a time. Rejects with `symbolic_link`, `not_a_directory`,
 * `cross_volume` (another device than the incarnation directory), `name_alias`, `invalid_path` (a name of the gateway's own).
 * A missing parent is no error.
 */
export async function walkTo(room: VolumeRoom, resource: Resource): Promise<HeldPlace> {
  const segments = resource.path.split('/');
  if (segments.some(isHiddenSegment)) throw refuse('invalid_path', 'The path has a name that is reserved.');
  const name = segments.pop() ?? '';
  return walk(room, resource, { from: room.root, parents: segments, name });
}

/** Goes on from a directory that is held (and is closed here when left). */
export async function walk(
  room: VolumeRoom,
  resource: Resource,
  way: { from: Descriptor; parents: readonly string[]; name: string; made?: readonly MadeDirectory[] },
): Promise<HeldPlace> {
  const { calls } = room;
  let dir = way.from;
  try {
    for (const [depth, segment] of way.parents.entries()) {
      if (room.folds) await assertNoAlias(calls, dir, segment);
      const next = await openDirectory(calls, dir, segment);
      if (next === null) return new HeldPlace(room, resource, { deepest: dir, missing: way.parents.slice(depth), name: way.name, parent: null });
      await closeBelowRoot(room, dir);
      dir = next;
      await room.refuseOthers?.(dir);
    }
    const { dev, ino } = await calls.fstat(dir);
    if (dev !== room.dev) throw refuse('cross_volume', 'The path lies on another device than the volume.');
    if (room.folds) await assertNoAlias(calls, dir, way.name);
    return new HeldPlace(room, resource, { deepest: dir, missing: [], name: way.name, parent: { dev, ino }, made: way.made ?? [] });
  } catch (thrown) {
    await closeBelowRoot(room, dir);
    throw thrown;
  }
}
