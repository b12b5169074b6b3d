import { sameVersion, type TargetFacts } from '../../domain/file-facts.ts';
import type { Intent } from '../../domain/intent.ts';
import type { Resource } from '../../domain/resource.ts';
import { redoName } from '../incarnation-names.ts';
import { RecordDamaged } from './facts-record.ts';
import { type RedoEntry, readRedoEntry, redoEntryOf } from './redo.ts';
import { applyInPlace, applyToCopy, seal, showsAll } from './redo-apply.ts';
import { atPlace, isInode, isVersion, type Settled, type SettleRoom, type Spot, settled } from './settle-room.ts';
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

async function redo(deps: SettleRoom, spot: Spot, entry: RedoEntry, now: TargetFacts): Promise<Settled> {
  const writer = deps.writerOf(entry.incarnation);
  if (writer !== 'unknown' && (await showsAll(deps, spot, entry, now))) return settled('committed', await seal(deps, spot, entry));
  if (writer === 'exited') return settled('finished', await applyInPlace(deps, spot, entry, now));
  const after = await applyToCopy(deps, spot, entry, true);
  return after === null ? settled('unknown', await spot.look()) : settled('finished', after);
}

/**
 * A redo entry without an intent in our journal: its writer is a stranger or was cut off before it decided. The inode is replaced
 * in any case, and the bytes are written only if the target already shows part of them.
 * @returns false when the target could not be judged; the entry is then kept.
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
    const untouched = sameVersion(now, entry.before);
    if (untouched && deps.writerOf(entry.incarnation) === 'exited') return settled('aborted', now);
    if (!untouched && (!canBeOurs(entry, now) || (await wholeStaged(deps, entry.staged, 'copy')) === null)) return settled('unknown', now);
    const after = await applyToCopy(deps, spot, entry, !untouched);
    return settled(after === null ? 'unknown' : 'finished', after);
  });
  return settlement !== 'unknown';
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
