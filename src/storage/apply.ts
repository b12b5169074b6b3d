import { constants } from 'node:fs';
import { GatewayError, refuse } from '../domain/errors.ts';
import { etagFound } from '../domain/file-facts.ts';
import type { Intent, Settled } from '../domain/intent.ts';
import { LIMITS } from '../domain/limits.ts';
import { writeStagedInto } from './apply-in-place.ts';
import { applyMove } from './apply-move.ts';
import { at } from './descriptor.ts';
import { classify, errnoOf, gatewayErrorOf, LaneError } from './errno.ts';
import type { Fence } from './fence.ts';
import type { InPlaceWrites } from './in-place-writes.ts';
import type { HeldPlace } from './path-walk.ts';
import type { VolumeRoom } from './room.ts';
import { lookAtName } from './target.ts';

const DIRECTORY_FLAGS = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/**
 * Makes an intent happen (`write-protocol.md`, "Apply, by kind"). Every change of a file's name names the incarnation directory as its
 * source or its target, so a superseded process is refused by the kernel (invariants I1, I3).
 */
export interface ApplyRoom {
  readonly room: VolumeRoom;
  readonly fence: Fence;
  readonly inPlace: InPlaceWrites;
  /** Looks at the volume and says what became of the intent. */
  settle(intent: Intent): Promise<Settled>;
  /** Told of a call that is still in the kernel: until it ends, nothing that is seen is final. */
  onHung(operationId: string, ended: Promise<void>): void;
}

/**
 * Resolves when it happened; rejects with a definite code when it did not; rejects with `outcome_unknown` (`operation_id`) when
 * that cannot be told. `from`: the place of the old name, for a move.
 */
export async function applyIntent(apply: ApplyRoom, intent: Intent, place: HeldPlace, from: HeldPlace | null): Promise<void> {
  if (intent.incarnation !== apply.room.incarnation) {
    // Its own directory was emptied into ours meanwhile, and recovery may have finished it.
    throw outcomeUnknown(intent, new Error('the intent belongs to an earlier incarnation of this process'));
  }
  // A directory carries no bytes and its change names no incarnation directory: this look is all that keeps a woken process off it.
  if ((intent.plan.kind === 'mkdir' || intent.plan.kind === 'rmdir') && (await apply.fence.look().catch(() => true)))
    throw outcomeUnknown(intent, apply.fence.refusal());
  try {
    await carryOut(apply, intent, place, from);
  } catch (thrown) {
    await judge(apply, intent, place, thrown);
  }
}

async function carryOut({ room, inPlace }: ApplyRoom, intent: Intent, place: HeldPlace, from: HeldPlace | null): Promise<void> {
  const { calls, inc } = room;
  const { plan } = intent;
  switch (plan.kind) {
    case 'replace':
      return calls.rename(at(inc, stagedNameOf(intent)), place.at);
    case 'create':
      return createOnly(room, intent, place);
    case 'several':
      return intent.before === null ? createOnly(room, intent, place) : calls.rename(at(inc, stagedNameOf(intent)), place.at);
    case 'append':
      return writeStagedInto(room, intent, plan, place);
    case 'in_place':
      if (intent.before !== null) inPlace.begin(intent.operationId, intent.before.ino);
      return writeStagedInto(room, intent, plan, place);
    case 'remove':
      return calls.rename(place.at, at(inc, plan.trash));
    case 'move':
      if (from === null) throw new Error('a move needs the place of its old name');
      return applyMove(room, intent, plan, place, from);
    case 'mkdir':
      return calls.mkdir(place.at);
    case 'rmdir':
      return removeDirectory(room, place);
  }
}

function stagedNameOf(intent: Intent): string {
  if (intent.staged === null) throw new Error(`an intent of kind ${intent.plan.kind} needs a staged file`);
  return intent.staged.name;
}

/**
 * `link` fails when the target exists, by itself (trap F8; never `RENAME_NOREPLACE` or `O_TMPFILE`, trap F7). NFS may repeat a
 * link that worked and answer EEXIST: the link count of the staged file tells.
 */
async function createOnly(room: VolumeRoom, intent: Intent, place: HeldPlace): Promise<void> {
  const { calls, inc } = room;
  const staged = at(inc, stagedNameOf(intent));
  if (!room.hardLinks) {
    // Without links there is no exclusive publish; the resource's mutex keeps other writes of this gateway out.
    if ((await lookAtName(calls, place.at)) !== null) throw refuse('already_exists', 'There is something at this path already.');
    return calls.rename(staged, place.at);
  }
  try {
    await calls.link(staged, place.at);
  } catch (thrown) {
    if (errnoOf(thrown) !== 'EEXIST') throw thrown;
    const [own, target] = await Promise.all([lookAtName(calls, staged), lookAtName(calls, place.at)]);
    const isOurs = own !== null && target !== null && own.ino === target.ino && own.links === 2;
    if (!isOurs) throw refuse('already_exists', 'There is something at this path already.');
  }
  // The file is published. A staged name that stays is removed by `tidy`, or at the next start.
  await calls.unlink(staged).catch(() => undefined);
}

async function removeDirectory({ calls }: VolumeRoom, place: HeldPlace): Promise<void> {
  try {
    await calls.rmdir(place.at);
  } catch (thrown) {
    const errno = errnoOf(thrown);
    if (errno !== 'ENOTEMPTY' && errno !== 'EEXIST') throw thrown;
    throw refuse('directory_not_empty', await whyNotEmpty(calls, place));
  }
}

/** Case B23: what an NFS client keeps of removed files that are still open is invisible, so the answer must name it. */
async function whyNotEmpty(calls: VolumeRoom['calls'], place: HeldPlace): Promise<string> {
  const plain = 'The directory is not empty.';
  try {
    const directory = await calls.open(place.at, DIRECTORY_FLAGS);
    try {
      const names = await calls.names(directory, LIMITS.nfsLeftoversMax);
      const onlyLeftovers = names.length > 0 && names.every((name) => name.toString('latin1').startsWith('.nfs'));
      return onlyLeftovers
        ? 'Only files are left in it that were removed but are still open (.nfs*); it can be removed once they are closed.'
        : plain;
    } finally {
      await calls.close(directory);
    }
  } catch {
    // The reason could not be looked up; the refusal itself stands.
    return plain;
  }
}

async function judge(apply: ApplyRoom, intent: Intent, place: HeldPlace, thrown: unknown): Promise<void> {
  const { room, fence } = apply;
  if (thrown instanceof LaneError && thrown.started) {
    apply.onHung(intent.operationId, thrown.ended);
    throw outcomeUnknown(intent, thrown);
  }
  const verdict = classify(thrown, room.calls.local);
  if (verdict === 'definite') return notApplied(apply, intent, thrown);
  if (verdict === 'fenced_candidate') {
    // The successor may have found the staged file and finished this write.
    if (await fence.look().catch(() => true)) throw outcomeUnknown(intent, thrown);
    if (room.calls.local && (await parentIsGone(room, place)))
      return notApplied(apply, intent, refuse('not_found', 'The parent directory was removed.'));
  }
  const { settlement, after } = await apply.settle(intent).catch((): Settled => ({ settlement: 'unknown', after: null }));
  if (settlement === 'unknown') throw outcomeUnknown(intent, thrown);
  const { etagAfter } = intent.audit;
  // It was finished under another version than the answer names; the last word, which the settle loop writes, has the right one.
  if (settlement !== 'aborted' && etagFound(etagAfter, after) !== etagAfter) throw outcomeUnknown(intent, thrown);
  apply.inPlace.end(intent.operationId);
  if (settlement === 'aborted') throw gatewayErrorOf(firstCause(thrown));
}

/** The move stopped half way and was taken back: what stopped it is what the caller learns. */
function firstCause(thrown: unknown): unknown {
  if (!(thrown instanceof GatewayError) || thrown.code !== 'outcome_unknown' || thrown.cause === undefined) return thrown;
  return thrown.cause instanceof AggregateError ? thrown.cause.errors[0] : thrown.cause;
}

function notApplied(apply: ApplyRoom, intent: Intent, thrown: unknown): never {
  apply.inPlace.end(intent.operationId);
  throw gatewayErrorOf(thrown);
}

async function parentIsGone({ calls }: VolumeRoom, place: HeldPlace): Promise<boolean> {
  if (place.dir === null) return true;
  return (await calls.fstat(place.dir)).nlink === 0n;
}

/** After the intent: whether it happened is not known, and a blind retry could do harm. */
export function outcomeUnknown(intent: Intent, cause: unknown): GatewayError {
  return new GatewayError('outcome_unknown', {
    detail: 'The volume did not say whether the write happened. Ask for the operation before trying again.',
    members: { operation_id: intent.operationId },
    retryAfterMs: LIMITS.settleRetryMs,
    cause,
  });
}
