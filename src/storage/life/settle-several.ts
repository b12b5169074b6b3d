import type { Intent, Settled, Settlement } from '../../domain/intent.ts';
import { readManifest } from './manifest-record.ts';
import { goBack, rollManifest, type Standing, standingOf, waits } from './roll-manifest.ts';
import type { Roll, Rolled } from './rolls.ts';
import { isPublished } from './settle-file.ts';
import { atPlace, isBefore, type SettleRoom, settled } from './settle-room.ts';

/**
 * Recovery of one of several files: the whole manifest goes forward, or, when a staged file is not whole or a definite error
 * stands in the way, back (the end states are all or nothing). Asking for each intent in turn gives the same answer.
 */
export async function settleSeveral(deps: SettleRoom, intent: Intent, manifestName: string): Promise<Settled> {
  const roll = await rollOf(deps, intent, manifestName);
  const entry = roll?.entries.get(intent.resource.path);
  if (roll === null || entry === undefined) return withoutManifest(deps, intent);
  return atPlace(deps, intent.resource, async (spot) => {
    const now = await spot.look();
    const standing = await standingOf(deps, spot, entry, now, 'ours');
    // Published, and somebody put back what was before.
    if (standing === 'old' && isForward(roll.rolled) && !(await waits(deps, entry))) return settled('committed', null);
    return settled(settlementOf(roll.rolled, standing), now);
  });
}

async function rollOf(deps: SettleRoom, { operationId, resource }: Intent, manifestName: string): Promise<Roll | null> {
  const known = deps.rolls.of(operationId);
  if (known !== null) return known;
  const manifest = await readManifest(deps.room.calls, deps.directory.entry(manifestName));
  if (manifest === null) return null;
  // The intents are one journal transaction: where a later write followed on one target, the whole operation had ended before.
  const ended = manifest.entries.some(({ path }) => !deps.isUnsettled(manifest.operationId, path));
  return deps.rolls.note(manifest, ended ? 'done' : await rollManifest(deps, manifest, resource, 'ours'));
}

/** `Volume.restore`: after a definite failure half-way, while the gateway lives. True when every target is as it was before. */
export async function restoreSeveral(deps: SettleRoom, intents: readonly Intent[]): Promise<boolean> {
  const [first] = intents;
  if (first === undefined || first.plan.kind !== 'several') throw new Error('only several files are put back');
  deps.rolls.forget(first.operationId);
  const manifest = await readManifest(deps.room.calls, deps.directory.entry(first.plan.manifest));
  if (manifest !== null) return (await goBack(deps, manifest, first.resource)) === 'back';
  for (const intent of intents) if ((await withoutManifest(deps, intent)).settlement !== 'aborted') return false;
  return true;
}

function isForward(rolled: Rolled): boolean {
  return rolled === 'done' || rolled === 'forward';
}

function settlementOf(rolled: Rolled, standing: Standing): Settlement {
  if (standing === 'other' || rolled === 'stuck') return 'unknown';
  if (rolled === 'back') return standing === 'old' ? 'aborted' : 'unknown';
  if (standing === 'old') return 'unknown';
  return rolled === 'forward' ? 'finished' : 'committed';
}

/** The manifest goes only after the outcome is known: without it nothing was left to apply. */
function withoutManifest(deps: SettleRoom, intent: Intent): Promise<Settled> {
  return atPlace(deps, intent.resource, async (spot) => {
    const now = await spot.look();
    if (intent.staged !== null && (await isPublished(deps, spot, now, intent.staged, intent.before === null ? 'bytes' : 'inode'))) {
      await spot.sync();
      return settled('committed', now);
    }
    return settled(isBefore(now, intent.before) ? 'aborted' : 'unknown', now);
  });
}
