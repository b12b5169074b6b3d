import type { TargetFacts } from '../../domain/file-facts.ts';
import type { Intent, Settlement } from '../../domain/intent.ts';
import type { Resource } from '../../domain/resource.ts';
import { type Manifest, type ManifestEntry, putManifest, readManifest } from './manifest-record.ts';
import { resourceLike } from './resource-like.ts';
import { isPublished } from './settle-file.ts';
import { atPlace, change, isBefore, isVersion, type Settled, type SettleRoom, type Spot, settled } from './settle-room.ts';
import { isStillStaged, wholeStaged } from './staged-file.ts';

/** Where one target of a manifest stands. `old`: as before, or the kept old file. `other`: neither; nobody overwrites it. */
type Standing = 'staged' | 'old' | 'other';

/**
 * Recovery of one of several files: the whole manifest goes forward, or, when a staged file is not whole or a definite error
 * stands in the way, back (the end states are all or nothing). Asking for each intent in turn gives the same answer.
 */
export async function settleSeveral(deps: SettleRoom, intent: Intent, manifestName: string): Promise<Settled> {
  const manifest = await readManifest(deps.room.calls, deps.directory.entry(manifestName));
  const entry = manifest?.entries.find(({ path }) => path === intent.resource.path);
  if (manifest === null || entry === undefined) return withoutManifest(deps, intent);
  // The intents are one journal transaction: where a later write followed on one target, the whole operation had ended before.
  const ended = manifest.entries.some(({ path }) => !deps.isUnsettled(manifest.operationId, path));
  const verdict = ended ? 'done' : await rollManifest(deps, manifest, intent.resource);
  return atPlace(deps, intent.resource, async (spot) => {
    const now = await spot.look();
    const standing = await standingOf(deps, spot, entry, now);
    return settled(settlementOf(verdict, standing), now);
  });
}

/** `done`: nothing was left to do. `stuck`: a target is neither old nor new, and something is left to do. */
export type Rolled = 'done' | 'forward' | 'back' | 'stuck';

/** Brings every target of a manifest to one side, as far as nothing foreign is overwritten. */
export async function rollManifest(deps: SettleRoom, manifest: Manifest, like: Pick<Resource, 'volume'>): Promise<Rolled> {
  if (manifest.direction === 'back') return (await putBack(deps, manifest, like)) ? 'back' : 'stuck';
  const standings = await lookAtEntries(deps, manifest, like);
  const left = manifest.entries.filter((_, index) => standings[index] === 'old');
  if (left.length === 0) return 'done';
  if (standings.includes('other')) return 'stuck';
  for (const entry of left) {
    if (entry.staged === null || (await wholeStaged(deps, entry.staged, 'copy')) === null) return goBack(deps, manifest, like);
  }
  for (const entry of left) {
    const outcome = await publishEntry(deps, entry, like);
    if (outcome === 'refused') return goBack(deps, manifest, like);
    if (outcome === 'unknown') return 'stuck';
  }
  return 'forward';
}

/** Decides durably that the old files are put back, and does it. */
async function goBack(deps: SettleRoom, manifest: Manifest, like: Pick<Resource, 'volume'>): Promise<'back' | 'stuck'> {
  const back: Manifest = { ...manifest, direction: 'back' };
  await putManifest(deps.room.calls, deps.directory, back);
  return (await putBack(deps, back, like)) ? 'back' : 'stuck';
}

/** `Volume.restore`: after a definite failure half-way, while the gateway lives. True when every target is as it was before. */
export async function restoreSeveral(deps: SettleRoom, intents: readonly Intent[]): Promise<boolean> {
  const [first] = intents;
  if (first === undefined || first.plan.kind !== 'several') throw new Error('only several files are put back');
  const manifest = await readManifest(deps.room.calls, deps.directory.entry(first.plan.manifest));
  if (manifest !== null) return (await goBack(deps, manifest, first.resource)) === 'back';
  for (const intent of intents) if ((await withoutManifest(deps, intent)).settlement !== 'aborted') return false;
  return true;
}

/** True when every target is old again, or holds what somebody else put there before we could: that is not ours to move. */
async function putBack(deps: SettleRoom, manifest: Manifest, like: Pick<Resource, 'volume'>): Promise<boolean> {
  let all = true;
  for (const entry of manifest.entries) {
    const { settlement } = await atPlace(deps, resourceLike(like, entry.path), async (spot) => {
      if ((await standingOf(deps, spot, entry, await spot.look())) === 'staged') await change(deps, () => restoreEntry(deps, entry, spot));
      const now = await spot.look();
      const isOld = (await standingOf(deps, spot, entry, now)) === 'old';
      if (!isOld && (entry.staged === null || !(await isStillStaged(deps, entry.staged)))) return settled('unknown', now);
      await spot.sync();
      return settled('aborted', now);
    });
    if (settlement === 'unknown') all = false;
  }
  return all;
}

async function restoreEntry(deps: SettleRoom, entry: ManifestEntry, spot: Spot): Promise<void> {
  const { calls } = deps.room;
  // A new file goes back to where it was staged; an old one takes its name again.
  if (entry.kept === null && entry.staged !== null) await calls.rename(spot.at, deps.directory.entry(entry.staged.name));
  else if (entry.kept !== null) await calls.rename(deps.directory.entry(entry.kept.name), spot.at);
}

async function publishEntry(deps: SettleRoom, entry: ManifestEntry, like: Pick<Resource, 'volume'>): Promise<'made' | 'refused' | 'unknown'> {
  const { calls } = deps.room;
  const { staged } = entry;
  if (staged === null) return 'refused';
  let outcome: 'made' | 'refused' | 'unknown' = 'unknown';
  await atPlace(deps, resourceLike(like, entry.path), async (spot) => {
    outcome = await change(deps, async () => {
      await spot.withParents();
      const from = deps.directory.entry(staged.name);
      await (entry.before === null && deps.room.hardLinks ? calls.link(from, spot.at) : calls.rename(from, spot.at));
    });
    const now = await spot.look();
    if ((await standingOf(deps, spot, entry, now)) === 'staged') outcome = 'made';
    if (outcome === 'made') await spot.sync();
    return settled('unknown', now);
  });
  return outcome;
}

export async function lookAtEntries(deps: SettleRoom, manifest: Manifest, like: Pick<Resource, 'volume'>): Promise<Standing[]> {
  const standings: Standing[] = [];
  for (const entry of manifest.entries) standings.push(await lookAt(deps, entry, like));
  return standings;
}

async function lookAt(deps: SettleRoom, entry: ManifestEntry, like: Pick<Resource, 'volume'>): Promise<Standing> {
  let standing: Standing = 'other';
  await atPlace(deps, resourceLike(like, entry.path), async (spot) => {
    const now = await spot.look();
    standing = await standingOf(deps, spot, entry, now);
    if (standing === 'staged') await spot.sync();
    return settled('unknown', now);
  });
  return standing;
}

async function standingOf(deps: SettleRoom, spot: Spot, entry: ManifestEntry, now: TargetFacts | null): Promise<Standing> {
  if (isBefore(now, entry.before) || isVersion(now, entry.kept?.facts ?? null)) return 'old';
  // Staged files of a stranger come as copies: their bytes are what is compared, once the file is known not to be the old one.
  if (entry.staged !== null && (await isPublished(deps, spot, now, entry.staged, 'bytes'))) return 'staged';
  return 'other';
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
