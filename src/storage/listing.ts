import type { BigIntStats } from 'node:fs';
import { rfc3339 } from '../domain/clock.ts';
import { refuse } from '../domain/errors.ts';
import { LIMITS } from '../domain/limits.ts';
import { isHiddenSegment, type Resource } from '../domain/resource.ts';
import type { DirectoryEntry } from '../domain/volume.ts';
import { at, type Descriptor } from './descriptor.ts';
import { errnoOf, mapped } from './errno.ts';
import { closeBelowRoot, openDirectory, walkTo } from './path-walk.ts';
import type { VolumeRoom } from './room.ts';
import { kindOf } from './target-kind.ts';

export interface ListingPage {
  readonly entries: readonly DirectoryEntry[];
  readonly nextCursor: string | null;
}

/** A directory is read in one go on a local volume; every so many names other work gets its turn. */
const NAMES_PER_TURN = 2_048;
const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * One page of a directory, sorted by the bytes of the names; `directory` is `null` for the root. Memory holds a few pages of names whatever the
 * size of the directory, and only the page's own entries are looked at (trap F30). Hidden names are not shown; a name that is not UTF-8 comes
 * as `nameBase64` (trap F22). Rejects with `not_found`, `not_a_directory`, `symbolic_link`, `invalid_request` (a cursor that is none of ours; a
 * directory over the cap).
 */
export async function listDirectory(
  room: VolumeRoom,
  directory: Resource | null,
  page: { readonly limit: number; readonly cursor: string | null },
): Promise<ListingPage> {
  const after = page.cursor === null ? null : decodeCursor(page.cursor);
  return mapped(async () => {
    const dir = await openListed(room, directory);
    try {
      const names = await smallestNames(room, dir, page.limit + 1, after);
      const shown = names.slice(0, page.limit);
      const last = shown.at(-1);
      const nextCursor = names.length > page.limit && last !== undefined ? encodeCursor(last) : null;
      return { entries: await entriesOf(room, dir, shown), nextCursor };
    } finally {
      await closeBelowRoot(room, dir);
    }
  });
}

async function openListed(room: VolumeRoom, directory: Resource | null): Promise<Descriptor> {
  if (directory === null) return room.root;
  if (directory.path.split('/').some(isHiddenSegment)) throw refuse('not_found', 'There is no such directory.');
  const place = await walkTo(room, directory);
  try {
    const found = place.dir === null ? null : await openDirectory(room.calls, place.dir, place.name);
    if (found === null) throw refuse('not_found', 'There is no such directory.');
    return found;
  } finally {
    place.close();
  }
}

/** The `count` smallest names behind `after`, found in one pass over the directory. */
async function smallestNames({ calls }: VolumeRoom, directory: Descriptor, count: number, after: Buffer | null): Promise<Buffer[]> {
  const open = await calls.openDirectory(directory);
  let kept: Buffer[] = [];
  try {
    let seen = 0;
    for (let name = await calls.readDirectory(open); name !== null; name = await calls.readDirectory(open)) {
      seen += 1;
      if (seen > LIMITS.listEntriesMax)
        throw refuse('invalid_request', `The directory has more than ${LIMITS.listEntriesMax} entries and is not listed.`);
      if (seen % NAMES_PER_TURN === 0) await new Promise((resolve) => setImmediate(resolve));
      if (isHiddenSegment(name.toString('latin1')) || (after !== null && Buffer.compare(name, after) <= 0)) continue;
      kept.push(name);
      if (kept.length >= 4 * count) kept = kept.sort(Buffer.compare).slice(0, count);
    }
  } finally {
    await open.close().catch(() => undefined);
  }
  return kept.sort(Buffer.compare).slice(0, count);
}

async function entriesOf(room: VolumeRoom, directory: Descriptor, names: readonly Buffer[]): Promise<DirectoryEntry[]> {
  const entries: DirectoryEntry[] = [];
  for (let done = 0; done < names.length; done += LIMITS.volumeInFlightDefault) {
    const some = names.slice(done, done + LIMITS.volumeInFlightDefault);
    const found = await Promise.all(some.map((name) => entryOf(room, directory, name)));
    entries.push(...found.filter((entry) => entry !== null));
  }
  return entries;
}

/** @returns `null` for a name that went away since the directory was read. */
async function entryOf({ calls }: VolumeRoom, directory: Descriptor, name: Buffer): Promise<DirectoryEntry | null> {
  let stats: BigIntStats;
  try {
    stats = await calls.lstat(at(directory, name));
  } catch (thrown) {
    if (errnoOf(thrown) === 'ENOENT') return null;
    throw thrown;
  }
  const type = kindOf(stats);
  const text = utf8(name);
  return {
    name: text,
    nameBase64: text === null ? name.toString('base64') : null,
    type,
    sizeBytes: type === 'file' ? Number(stats.size) : null,
    modifiedAt: rfc3339(Number(stats.mtimeMs)),
  };
}

function utf8(name: Buffer): string | null {
  try {
    return UTF8.decode(name);
  } catch {
    return null;
  }
}

function encodeCursor(last: Buffer): string {
  return last.toString('base64url');
}

/** A cursor is the last name shown; it comes from the network and is only ever compared with names. */
function decodeCursor(cursor: string): Buffer {
  const name = Buffer.from(cursor, 'base64url');
  const isOurs = name.byteLength > 0 && name.byteLength <= LIMITS.segmentBytesMax && name.toString('base64url') === cursor;
  if (!isOurs) throw refuse('invalid_request', 'The cursor is not one that this gateway gave out.');
  return name;
}
