import { refuse } from '../../domain/errors.ts';
import type { FileFacts, TargetFacts } from '../../domain/file-facts.ts';
import type { Descriptor } from '../descriptor.ts';
import { factsOf } from '../target-kind.ts';
import { copyInto } from './copy-into.ts';
import { type RedoEntry, writeRedoEntry } from './redo.ts';
import { change, isInode, type SettleRoom, type Spot } from './settle-room.ts';
import { copyNameOf } from './volume-names.ts';
import { eachChunk, OPEN_READ, OPEN_WRITE, sameBytes, withOpen } from './whole-file.ts';

/** Whether the target already holds every byte of the write, and ends where it should. */
export function showsAll(deps: SettleRoom, spot: Spot, entry: RedoEntry, now: TargetFacts): Promise<boolean> {
  return showsFirst(deps, spot, entry, now, entry.lengthBytes);
}

/** Whether the target holds the first `lengthBytes` of the write. */
export async function showsFirst(deps: SettleRoom, spot: Spot, entry: RedoEntry, now: TargetFacts, lengthBytes: number): Promise<boolean> {
  const { calls } = deps.room;
  if (now.sizeBytes < entry.offset + lengthBytes) return false;
  return withOpen(calls, spot.at, OPEN_READ, (target) =>
    withOpen(calls, deps.directory.entry(entry.staged.name), OPEN_READ, async (staged) => {
      if ((await calls.fstat(target)).ino !== now.ino) return false;
      return sameBytes(calls, staged, 0, target, entry.offset, lengthBytes);
    }),
  );
}

/** For a target that shows everything: makes it durable under the mtime that the write promised. */
export async function seal(deps: SettleRoom, spot: Spot, entry: RedoEntry): Promise<FileFacts> {
  return withOpen(deps.room.calls, spot.at, OPEN_WRITE, (target) => sealed(deps, entry, target));
}

/** In place: only when the end of the writer was seen, so that no late write of its own can follow. */
export async function applyInPlace(deps: SettleRoom, spot: Spot, entry: RedoEntry, now: TargetFacts): Promise<FileFacts> {
  return withOpen(deps.room.calls, spot.at, OPEN_WRITE, async (target) => {
    if (!isInode(factsOf(await deps.room.calls.fstat(target)), now.ino))
      throw refuse('volume_unavailable', 'A file was replaced while it was recovered.');
    await writeOver(deps, entry, target);
    return sealed(deps, entry, target);
  });
}

/**
 * The inode of the target is replaced by a changed copy: a writer whose end was not seen may still write into the old one, and
 * nobody sees that any more. The copy is noted in the redo entry before it takes the target's name, so that a second recovery
 * knows it again.
 * @returns `null` when the rename did not happen.
 */
export async function applyToCopy(deps: SettleRoom, spot: Spot, entry: RedoEntry, redo: boolean): Promise<TargetFacts | null> {
  const { calls } = deps.room;
  const copy = deps.directory.entry(copyNameOf(entry.staged.name));
  await withOpen(calls, spot.at, OPEN_READ, (target) => copyInto(calls, target, copy));
  const replacement = await withOpen(calls, copy, OPEN_WRITE, async (file) => {
    if (!redo) return factsOf(await calls.fstat(file));
    await writeOver(deps, entry, file);
    return sealed(deps, entry, file);
  });
  await writeRedoEntry(calls, deps.directory, { ...entry, replacement });
  await change(deps, () => calls.rename(copy, spot.at));
  const now = await spot.look();
  if (!isInode(now, replacement.ino)) return null;
  await spot.sync();
  return now;
}

async function writeOver(deps: SettleRoom, entry: RedoEntry, target: Descriptor): Promise<void> {
  const { calls } = deps.room;
  if (entry.kind === 'append') await calls.ftruncate(target, entry.before.sizeBytes);
  await withOpen(calls, deps.directory.entry(entry.staged.name), OPEN_READ, async (staged) => {
    await eachChunk(calls, staged, (chunk, position) => calls.writeAll(target, chunk, entry.offset + position), 0, entry.lengthBytes);
  });
}

async function sealed(deps: SettleRoom, entry: RedoEntry, target: Descriptor): Promise<FileFacts> {
  const { calls } = deps.room;
  if ((await calls.fstat(target)).mtimeNs !== entry.mtimeNs) await calls.setMtime(target, entry.mtimeNs);
  await calls.fsync(target);
  return factsOf(await calls.fstat(target));
}
