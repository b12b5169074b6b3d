import { constants } from 'node:fs';
import { type GatewayError, refuse } from '../domain/errors.ts';
import type { ApplyPlan, Intent } from '../domain/intent.ts';
import { LIMITS } from '../domain/limits.ts';
import { at, type Descriptor } from './descriptor.ts';
import { classify, gatewayErrorOf, LaneError } from './errno.ts';
import { mountIdOf } from './mount-id.ts';
import type { HeldPlace } from './path-walk.ts';
import type { VolumeRoom } from './room.ts';
import { factsOf } from './target-kind.ts';

type InPlacePlan = Extract<ApplyPlan, { kind: 'append' | 'in_place' }>;

const TARGET = constants.O_RDWR | constants.O_NOFOLLOW | constants.O_NONBLOCK;
const STAGED = constants.O_RDONLY | constants.O_NOFOLLOW;

/**
 * Append and in-place range write: the staged bytes go to an explicit offset of the file that the intent names by inode (never
 * `O_APPEND`, trap F6), then mtime, fsync, close. The redo entry is durable already, so a crash in the middle is finished at
 * the next start.
 */
export async function writeStagedInto(room: VolumeRoom, intent: Intent, plan: InPlacePlan, place: HeldPlace): Promise<void> {
  const { calls, inc } = room;
  if (intent.staged === null || intent.before === null) throw new Error('an in-place write needs a staged file and the file it changes');
  const target = await calls.open(place.at, TARGET);
  try {
    // A file, too, can be mounted at a second name (trap F19).
    if (mountIdOf(target) !== mountIdOf(place.at.dir)) throw refuse('cross_volume', 'Something else is mounted at this name.');
    assertSame(factsOf(await calls.fstat(target)), intent, plan);
    const staged = await calls.open(at(inc, intent.staged.name), STAGED);
    try {
      await copyInto(room, staged, target, plan);
      await calls.setMtime(target, plan.mtimeNs);
      await calls.fsync(target);
      await calls.close(target);
    } catch (thrown) {
      await takeBack(room, target, intent, plan, thrown);
    } finally {
      await calls.close(staged).catch(() => undefined);
    }
  } finally {
    // A no-op when it was closed above, where its error counts.
    await calls.close(target).catch(() => undefined);
  }
}

/** Somebody who bypasses the gateway may have come between the last look and now; nothing is written over what they did. */
function assertSame(now: { readonly kind: string; readonly ino: bigint; readonly sizeBytes: number }, intent: Intent, plan: InPlacePlan): void {
  if (now.kind !== 'file' || now.ino !== intent.before?.ino)
    throw refuse('precondition_failed', 'The file was replaced by somebody else before the write.');
  const sizeFits = plan.kind === 'append' ? now.sizeBytes === plan.offset : now.sizeBytes >= plan.offset;
  if (!sizeFits) throw refuse('offset_mismatch', 'The file has another size than the write was made for.', { expected_offset: now.sizeBytes });
}

async function copyInto({ calls }: VolumeRoom, staged: Descriptor, target: Descriptor, plan: InPlacePlan): Promise<void> {
  const buffer = Buffer.allocUnsafeSlow(Math.min(LIMITS.copyChunkBytes, Math.max(1, plan.lengthBytes)));
  for (let done = 0; done < plan.lengthBytes; ) {
    const count = await calls.read(staged, buffer.subarray(0, Math.min(buffer.byteLength, plan.lengthBytes - done)), done);
    if (count === 0) throw partly('The staged bytes are shorter than the write.');
    await calls.writeAll(target, buffer.subarray(0, count), plan.offset + done);
    done += count;
  }
}

/**
 * The first byte may be in the file. An append whose disk filled up is cut off again and then did not happen; everything else is
 * for the settle loop, which has the redo entry. A sync that failed is not repeated (trap F3).
 */
async function takeBack(room: VolumeRoom, target: Descriptor, intent: Intent, plan: InPlacePlan, thrown: unknown): Promise<never> {
  const { calls } = room;
  if (thrown instanceof LaneError && thrown.started) throw thrown;
  const verdict = thrown instanceof LaneError ? 'unknown' : classify(thrown, calls.local);
  if (plan.kind !== 'append' || (verdict !== 'definite' && verdict !== 'answered')) throw partly('The write stopped in the middle.', thrown);
  try {
    // On NFS this waits for every write that is under way (trap X8).
    await calls.ftruncate(target, plan.offset);
    await calls.setMtime(target, intent.before?.mtimeNs ?? plan.mtimeNs);
    if (verdict === 'answered') assertCut(factsOf(await calls.fstat(target)), plan);
  } catch (second) {
    throw partly('The append failed and could not be taken back.', new AggregateError([thrown, second]));
  }
  throw verdict === 'answered' ? gatewayErrorOf(thrown) : thrown;
}

/** The server's refusal alone proves nothing; that the file ends where it did, does. */
function assertCut({ sizeBytes }: { readonly sizeBytes: number }, { offset }: InPlacePlan): void {
  if (sizeBytes !== offset) throw new Error('the file still has bytes of the append');
}

function partly(detail: string, cause?: unknown): GatewayError {
  const error = refuse('outcome_unknown', detail);
  error.cause = cause;
  return error;
}
