import { refuse } from '../domain/errors.ts';
import type { ApplyPlan, Intent } from '../domain/intent.ts';
import { type At, at } from './descriptor.ts';
import { classify, LaneError } from './errno.ts';
import { moveLinkName, moveTrashName } from './incarnation-names.ts';
import { linkOrRename } from './link-or-rename.ts';
import type { HeldPlace } from './path-walk.ts';
import type { VolumeRoom } from './room.ts';
import { lookAtName } from './target.ts';

type MovePlan = Extract<ApplyPlan, { kind: 'move' }>;

/**
 * MOVE in three steps, each of which names the incarnation directory: `link(a, inc/z)`, `rename(inc/z, b)`, `rename(a, inc/trash)`. The bytes
 * have a name outside at every instant, so a fence in the middle loses nothing, and recovery continues from the inodes of a, b and z.
 * Where the file cannot be linked its names are given up for an instant: `rename(a, inc/z)`, `rename(inc/z, b)`.
 *
 * b is never published by `link`: the file has another name, and NFS would carry the link out for a superseded process (traps, Part 5).
 */
export async function applyMove(room: VolumeRoom, intent: Intent, plan: MovePlan, place: HeldPlace, from: HeldPlace): Promise<void> {
  const { calls, inc } = room;
  const between = at(inc, moveLinkName(plan.manifest));
  const trash = at(inc, moveTrashName(plan.manifest));
  await assertUntouched(room, intent, plan, place.at, from.at);
  const linked = await linkOrRename(room, from.at, between);
  try {
    await calls.rename(between, place.at);
  } catch (thrown) {
    await takeBack(room, { linked, between, a: from.at }, thrown);
  }
  try {
    if (linked) await calls.rename(from.at, trash);
    await syncOldParent(room, from);
  } catch (thrown) {
    // The new name is there, so this did happen or must be finished; it is no failure that changed nothing.
    if (thrown instanceof LaneError && thrown.started) throw thrown;
    throw halfWay(thrown);
  }
}

/** Trap F17: `rename` between two links of one inode succeeds and does nothing, so that case must not get as far. */
async function assertUntouched({ calls }: VolumeRoom, intent: Intent, plan: MovePlan, b: At, a: At): Promise<void> {
  const [source, target] = await Promise.all([lookAtName(calls, a), lookAtName(calls, b)]);
  if (source === null) throw refuse('not_found', 'The file to move is not there any more.');
  if (source.kind !== 'file' || source.ino !== plan.source.ino)
    throw refuse('precondition_failed', 'The file to move was replaced by somebody else.');
  if (target === null) return;
  if (target.ino === source.ino) throw refuse('same_resource', 'Both names are the same file.');
  if (intent.before === null) throw refuse('already_exists', 'There is something at this path already.');
}

interface FirstStep {
  readonly linked: boolean;
  readonly between: At;
  readonly a: At;
}

async function takeBack({ calls }: VolumeRoom, { linked, between, a }: FirstStep, thrown: unknown): Promise<never> {
  if (thrown instanceof LaneError && thrown.started) throw thrown;
  if (classify(thrown, calls.local) !== 'definite' || !calls.local) throw halfWay(thrown);
  try {
    await (linked ? calls.unlink(between) : calls.rename(between, a));
  } catch (second) {
    throw halfWay(new AggregateError([thrown, second]));
  }
  throw thrown;
}

async function syncOldParent({ sync }: VolumeRoom, from: HeldPlace): Promise<void> {
  if (from.dir !== null) await sync.sync(from.dir);
}

function halfWay(cause: unknown): Error {
  const error = refuse('outcome_unknown', 'The move stopped half way.');
  error.cause = cause;
  return error;
}
