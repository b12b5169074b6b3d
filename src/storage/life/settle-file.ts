import type { StagedFacts, TargetFacts } from '../../domain/file-facts.ts';
import type { Intent, Settled } from '../../domain/intent.ts';
import type { At } from '../descriptor.ts';
import { factsOf } from '../target-kind.ts';
import { copyInto } from './copy-into.ts';
import { afterFailure, atPlace, change, isBefore, isInode, isVersion, type SettleRoom, type Spot, settled } from './settle-room.ts';
import { wholeStaged } from './staged-file.ts';
import { copyNameOf } from './volume-names.ts';
import { OPEN_READ, orAbsent, sha256Of, withOpen } from './whole-file.ts';

/**
 * Recovery of whole-file writes and removals (I3): target = staged: committed; target = before: finished when the staged file is
 * whole, else aborted; anything else is unknown and nothing is overwritten. A missing staged file proves nothing.
 */

/** PUT, COPY and copied range writes: `rename` over the target, or an exclusive `link` where it must not exist. */
export function settlePublish(deps: SettleRoom, intent: Intent, how: 'rename' | 'link'): Promise<Settled> {
  const { staged } = intent;
  if (staged === null) return Promise.resolve(settled('unknown', null));
  return atPlace(deps, intent.resource, async (spot) => {
    const now = await spot.look();
    // What stands there as before is not it, though its bytes may be the same.
    const isOld = isBefore(now, intent.before) && !isVersion(now, staged);
    if (!isOld && (await isPublished(deps, spot, now, staged, toldBy(deps, how)))) {
      await spot.sync();
      return settled('committed', now);
    }
    if (!isOld) return settled('unknown', now);
    if ((await wholeStaged(deps, staged, how === 'link' ? 'copy' : 'original')) === null) return settled('aborted', now);
    return publish(deps, spot, { staged, how, intent });
  });
}

/** What was published may be a copy of the staged file, which its bytes tell and not its inode. */
function toldBy({ room }: SettleRoom, how: 'rename' | 'link'): 'inode' | 'bytes' {
  return how === 'link' || !room.calls.local ? 'bytes' : 'inode';
}

/** Whether the staged file stands at the target, or (`bytes`: it may have been published from its copy) a file with its very bytes. */
export async function isPublished(
  deps: SettleRoom,
  spot: Spot,
  now: TargetFacts | null,
  staged: StagedFacts,
  by: 'inode' | 'bytes',
): Promise<boolean> {
  if (now === null || now.kind !== 'file') return false;
  if (isVersion(now, staged)) return true;
  if (by === 'inode' || now.sizeBytes !== staged.sizeBytes) return false;
  const { calls } = deps.room;
  return withOpen(
    calls,
    spot.at,
    OPEN_READ,
    async (file) => (await calls.fstat(file)).ino === now.ino && (await sha256Of(calls, file)) === staged.sha256,
  );
}

async function publish(
  deps: SettleRoom,
  spot: Spot,
  { staged, how, intent }: { staged: StagedFacts; how: 'rename' | 'link'; intent: Intent },
): Promise<Settled> {
  const { calls } = deps.room;
  let from = deps.directory.entry(staged.name);
  if (how === 'rename' && deps.finishes) {
    try {
      from = await beyondReach(deps, staged);
    } catch (thrown) {
      // No name was changed. What is refused for good (no space) is over; of an error that says nothing the next start may make more.
      if ((await afterFailure(deps, thrown)) === 'unknown') throw thrown;
      return settled('aborted', await spot.look());
    }
  }
  const outcome = await change(deps, async () => {
    await spot.withParents();
    // Without hard links the look before is all the exclusion there is; nothing else writes here before recovery is over.
    await (how === 'link' && deps.room.hardLinks ? calls.link(from, spot.at) : calls.rename(from, spot.at));
  });
  const now = await spot.look();
  const isOld = isBefore(now, intent.before) && !isVersion(now, staged);
  if (outcome === 'made' || (!isOld && (await isPublished(deps, spot, now, staged, toldBy(deps, how))))) {
    await spot.sync();
    return settled('finished', now);
  }
  return settled(outcome === 'refused' && isOld ? 'aborted' : 'unknown', now);
}

/**
 * What takes the name of a replaced file after a start. Its staged file's sync ran beside the intent's, so on a network mount the old process's
 * client may not have been told that all of it is safe, and what it was not told it may send again by file handle (trap X7), over whatever is in
 * that file by then. So there a copy goes on. (Linux sends everything before it sets the mtime; it takes a mount that gives calls up.)
 */
async function beyondReach(deps: SettleRoom, staged: StagedFacts): Promise<At> {
  const { calls } = deps.room;
  const original = deps.directory.entry(staged.name);
  if (calls.local || deps.verify === 'facts') return original;
  const copy = deps.directory.entry(copyNameOf(staged.name));
  await withOpen(calls, original, OPEN_READ, (source) => copyInto(calls, source, copy));
  return copy;
}

/** DELETE: `rename(target, inc/trash)`. */
export function settleRemove(deps: SettleRoom, intent: Intent, trash: string): Promise<Settled> {
  const { before } = intent;
  if (before === null) return Promise.resolve(settled('unknown', null));
  return atPlace(deps, intent.resource, async (spot) => {
    const { calls } = deps.room;
    const now = await spot.look();
    if (now === null) {
      await spot.sync();
      return settled('committed', null);
    }
    if (!isBefore(now, before)) {
      // Somebody made a new file after ours was removed: the removal is proven by what lies in the trash.
      const inTrash = await orAbsent(calls.lstat(deps.directory.entry(trash)));
      return settled(inTrash !== null && isInode(factsOf(inTrash), before.ino) ? 'committed' : 'unknown', now);
    }
    const outcome = await change(deps, () => calls.rename(spot.at, deps.directory.entry(trash)));
    const left = outcome === 'made' ? null : await spot.look();
    if (left === null) {
      await spot.sync();
      return settled('finished', null);
    }
    return settled(outcome === 'refused' && isBefore(left, before) ? 'aborted' : 'unknown', left);
  });
}
