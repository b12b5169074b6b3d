import { sameVersion, type TargetFacts } from '../../domain/file-facts.ts';
import type { Intent, Settled } from '../../domain/intent.ts';
import type { Resource } from '../../domain/resource.ts';
import { redoName } from '../incarnation-names.ts';
import { RecordDamaged } from './facts-record.ts';
import { type RedoEntry, readRedoEntry, redoEntryOf } from './redo.ts';
import { applyInPlace, applyToCopy, seal, showsAll, showsFirst } from './redo-apply.ts';
import { atPlace, isInode, isVersion, type SettleRoom, type Spot, settled } from './settle-room.ts';
import { wholeStaged } from './staged-file.ts';

/**
 * Recovery of appends and in-place writes (I3): the same inode with a size that the write can have left gets the redo applied;
 * anything else is unknown and nothing is overwritten.
 */
export function settleInPlace(deps: SettleRoom, intent: Intent): Promise<Settled> {
  if (intent.before === null || intent.staged === null) return Promise.resolve(settled('unknown', null));
  const entry = redoEntryOf(intent);
  return atPlace(deps, intent.resource, async (spot) => {
    const now = await spot.look();
    if (isVersion(now, await notedReplacement(deps, entry))) return committed(spot, now);
    const whole = (await wholeStaged(deps, entry.staged, 'copy')) !== null;
    if (!whole && isSealed(entry, now)) return committed(spot, now);
    if (now === null || !canBeOurs(entry, now)) return settled('unknown', now);
    if (!whole) return settled(sameVersion(now, entry.before) ? 'aborted' : 'unknown', now);
    return redo(deps, spot, entry, now);
  });
}

async function committed(spot: Spot, now: TargetFacts | null): Promise<Settled> {
  await spot.sync();
  return settled('committed', now);
}

/**
 * The mtime that this write alone gives, on a file of the size that it leaves. While there is a whole staged file
 * this is not believed: after a power cut the mtime may be there without the bytes. The staged file goes only when both are durable.
 */
function isSealed(entry: RedoEntry, now: TargetFacts | null): boolean {
  const end = Math.max(entry.kind === 'append' ? 0 : entry.before.sizeBytes, entry.offset + entry.lengthBytes);
  return now !== null && now.kind === 'file' && now.mtimeNs === entry.mtimeNs && now.sizeBytes === end;
}

/**
 * On a local disk, and once its writer was seen to exit, the write is repeated in place: also where the file shows every byte already, for these
 * may be pages of a sync that failed, which the next sync would pass over (trap F3). Everybody else's file gets a new inode first.
 * On a network mount that is everybody's, unless the write was over: the client's kernel may send what a dead process has written, or send
 * it again, once the server answers (trap X7).
 */
async function redo(deps: SettleRoom, spot: Spot, entry: RedoEntry, now: TargetFacts): Promise<Settled> {
  const exited = deps.writerOf(entry.incarnation) === 'exited';
  if (exited && deps.room.calls.local) return settled('finished', await applyInPlace(deps, spot, entry, now));
  if (exited && isSealed(entry, now) && (await showsAll(deps, spot, entry, now))) return settled('committed', await seal(deps, spot, entry));
  const after = await applyToCopy(deps, spot, entry, true);
  return after === null ? settled('unknown', await spot.look()) : settled('finished', after);
}

/**
 * A redo entry of an operation that the journal does not know: a stranger's, one that was cut off before its intent, or one that was over so
 * long ago that it is forgotten. Newer writes may have followed, so its bytes are written only where the target proves that none did:
 * - it has the mtime that this write alone gives, and the size that it leaves: nothing changed the file since, though a power cut may have
 *   taken bytes away; or
 * - of an append, it ends inside the appended bytes, and what it has of them is what was staged: a write that came after a whole append
 *   would stand after all of it. (Somebody who cut the file in just this place since gets back what he cut.)
 * The old bytes under a write in the middle are written down nowhere, so without that mtime such a write proves nothing. What is written goes to
 * a new inode: the writer may still hold the old one. A file that stands there untouched, or shows all, gets a new inode for the same reason,
 * unless the writer was seen to exit (on a network mount: with the write over).
 * @returns false when nothing is proven; the file was left alone and nobody needs the entry.
 */
export async function settleStrayRedo(deps: SettleRoom, entry: RedoEntry, resource: Resource): Promise<boolean> {
  const { settlement } = await atPlace(deps, resource, async (spot) => {
    const now = await spot.look();
    if (now === null) return settled('aborted', null);
    if (isVersion(now, entry.replacement)) {
      await spot.sync();
      return settled('finished', now);
    }
    // Another file stands there now: whatever the old writer still does, it does to an inode without a name.
    if (!isInode(now, entry.before.ino)) return settled('aborted', now);
    const shows = await shownOf(deps, spot, entry, now);
    if (shows === 'unclear') return settled('unknown', now);
    const staysAsItIs = shows === 'nothing' || (shows === 'all' && (deps.room.calls.local || isSealed(entry, now)));
    if (staysAsItIs && deps.writerOf(entry.incarnation) === 'exited') return committed(spot, now);
    const after = await applyToCopy(deps, spot, entry, shows === 'part');
    return settled(after === null ? 'unknown' : 'finished', after);
  });
  return settlement !== 'unknown';
}

/** What a file of the right inode shows of the write. `part`: a part and nothing newer. */
async function shownOf(deps: SettleRoom, spot: Spot, entry: RedoEntry, now: TargetFacts): Promise<'nothing' | 'part' | 'all' | 'unclear'> {
  if (sameVersion(now, entry.before)) return 'nothing';
  if ((await wholeStaged(deps, entry.staged, 'copy')) === null) return isSealed(entry, now) ? 'all' : 'unclear';
  if (await showsAll(deps, spot, entry, now)) return 'all';
  if (isSealed(entry, now)) return 'part';
  const shown = now.sizeBytes - entry.before.sizeBytes;
  const endsInside = entry.kind === 'append' && shown > 0 && shown < entry.lengthBytes;
  return endsInside && (await showsFirst(deps, spot, entry, now, shown)) ? 'part' : 'unclear';
}

function canBeOurs(entry: RedoEntry, now: TargetFacts): boolean {
  if (!isInode(now, entry.before.ino) || now.sizeBytes < entry.before.sizeBytes) return false;
  return entry.kind === 'in_place' || now.sizeBytes <= entry.before.sizeBytes + entry.lengthBytes;
}

async function notedReplacement(deps: SettleRoom, entry: RedoEntry): Promise<RedoEntry['replacement']> {
  try {
    return (await readRedoEntry(deps.room.calls, deps.directory.entry(redoName(entry.staged.name))))?.replacement ?? null;
  } catch (thrown) {
    // The intent says all that the entry says, but for the replacement; without it the target's inode decides.
    if (thrown instanceof RecordDamaged) return null;
    throw thrown;
  }
}
