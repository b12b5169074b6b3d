import type { TargetFacts } from '../../domain/file-facts.ts';
import type { Resource } from '../../domain/resource.ts';
import { factsOf } from '../target-kind.ts';
import { type Manifest, type ManifestEntry, putManifest } from './manifest-record.ts';
import { resourceLike } from './resource-like.ts';
import type { Rolled } from './rolls.ts';
import { isPublished } from './settle-file.ts';
import { atPlace, change, isBefore, isVersion, type SettleRoom, type Spot, settled } from './settle-room.ts';
import { isStillStaged, wholeStaged } from './staged-file.ts';
import { orAbsent } from './whole-file.ts';

/**
 * Brings the targets of a manifest to one side (I3), as far as nothing foreign is overwritten.
 *
 * The staged files were synced, and their names too, before the manifest was. So while anything of the operation shows, a staged name that is
 * missing was published; where its target does not hold the staged file any more, somebody replaced or deleted it since. That is the end of
 * that entry, and never a reason to put back the others: they may have been acknowledged long ago. Only while nothing shows at all is
 * a missing name one that was dropped with its operation.
 *
 * `ours`: the journal says that the operation is unsettled, so nothing was written by us since; equal bytes are then the staged file, which
 * may have been published from a copy. `strangers`: the journal knows nothing of it, and it may be of any age. Then only the very version
 * (inode, size, mtime) that the manifest names counts as its file, and it goes back only when the manifest itself says so.
 */
export type Whose = 'ours' | 'strangers';

/** Where one target of a manifest stands. `old`: as before, or the kept old file. `other`: neither; nobody overwrites it. */
export type Standing = 'staged' | 'old' | 'other';

type Like = Pick<Resource, 'volume'>;

interface Scene {
  readonly entry: ManifestEntry;
  readonly standing: Standing;
  /** Its staged file has its own name still, and does not stand at the target. */
  readonly waits: boolean;
}

/** What was changed, and what was found changed, is durable when it resolves (trap F1). */
export async function rollManifest(deps: SettleRoom, manifest: Manifest, like: Like, whose: Whose): Promise<Rolled> {
  if (manifest.direction === 'back') return putBack(deps, manifest, like, whose);
  const rolled = await rollForward(deps, manifest, like, whose);
  await syncParents(deps, manifest, like);
  return rolled;
}

async function rollForward(deps: SettleRoom, manifest: Manifest, like: Like, whose: Whose): Promise<Rolled> {
  const scenes: Scene[] = [];
  for (const entry of manifest.entries) scenes.push(await look(deps, entry, like, whose));
  const isBegun = scenes.some(({ standing }) => standing === 'staged');
  // Of a stranger's operation that shows nowhere, nothing was applied.
  if (!isBegun && whose === 'strangers') return 'done';
  const old = scenes.filter(({ standing }) => standing === 'old');
  const left = isBegun ? old.filter(({ waits }) => waits) : old;
  if (left.length === 0) return 'done';
  if (scenes.some(({ standing, waits }) => standing === 'other' && (waits || !isBegun))) return 'stuck';
  const back = (): Promise<Rolled> | 'stuck' => (whose === 'ours' ? goBack(deps, manifest, like) : 'stuck');
  const entries: ManifestEntry[] = [];
  for (const { entry } of left) {
    const whole = entry.staged === null ? null : await wholeStaged(deps, entry.staged, 'copy');
    if (whole === null) return back();
    entries.push({ ...entry, staged: entry.staged === null ? null : { ...entry.staged, ...whole } });
  }
  if (whose === 'strangers') await noteCopies(deps, manifest, entries);
  for (const entry of entries) {
    const outcome = await publishEntry(deps, entry, like);
    if (outcome === 'refused') return back();
    if (outcome === 'unknown') return 'stuck';
  }
  return 'forward';
}

/** A stranger's staged files may lie here as copies; the manifest names these before they are published, so that they are known again. */
async function noteCopies(deps: SettleRoom, manifest: Manifest, left: readonly ManifestEntry[]): Promise<void> {
  const found = new Map(left.map((entry) => [entry.path, entry]));
  const isSame = (entry: ManifestEntry): boolean => entry.staged?.ino === (found.get(entry.path) ?? entry).staged?.ino;
  if (manifest.entries.every(isSame)) return;
  await putManifest(deps.room.calls, deps.directory, { ...manifest, entries: manifest.entries.map((entry) => found.get(entry.path) ?? entry) });
}

/** Decides durably that the old files are put back, and does it. */
export async function goBack(deps: SettleRoom, manifest: Manifest, like: Like): Promise<'back' | 'stuck'> {
  const back: Manifest = { ...manifest, direction: 'back' };
  await putManifest(deps.room.calls, deps.directory, back);
  return putBack(deps, back, like, 'ours');
}

/** `back` when every target is old again, or holds what somebody else put there: that is not ours to move. */
async function putBack(deps: SettleRoom, manifest: Manifest, like: Like, whose: Whose): Promise<'back' | 'stuck'> {
  let all = true;
  for (const entry of manifest.entries) {
    const { settlement } = await atPlace(deps, resourceLike(like, entry.path), async (spot) => {
      const found = await spot.look();
      if ((await standingOf(deps, spot, entry, found, whose)) === 'staged') await change(deps, () => restoreEntry(deps, entry, spot, found));
      const now = await spot.look();
      const standing = await standingOf(deps, spot, entry, now, whose);
      const isOver = standing === 'old' || (standing === 'other' && whose === 'strangers');
      return settled(isOver || (entry.staged !== null && (await isStillStaged(deps, entry.staged))) ? 'aborted' : 'unknown', now);
    });
    if (settlement === 'unknown') all = false;
  }
  await syncParents(deps, manifest, like);
  return all ? 'back' : 'stuck';
}

async function restoreEntry(deps: SettleRoom, entry: ManifestEntry, spot: Spot, found: TargetFacts | null): Promise<void> {
  const { calls } = deps.room;
  if (entry.kept !== null) return calls.rename(deps.directory.entry(entry.kept.name), spot.at);
  if (entry.staged === null) return;
  // A new file goes back to where it was staged. A rename between two names of one file does nothing, so a name that stayed there goes first.
  const own = deps.directory.entry(entry.staged.name);
  const stayed = await orAbsent(calls.lstat(own));
  if (stayed !== null && factsOf(stayed).ino === found?.ino) await calls.unlink(own);
  await calls.rename(spot.at, own);
}

async function publishEntry(deps: SettleRoom, entry: ManifestEntry, like: Like): Promise<'made' | 'refused' | 'unknown'> {
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
    if ((await standingOf(deps, spot, entry, now, 'ours')) === 'staged') outcome = 'made';
    return settled('unknown', now);
  });
  return outcome;
}

async function look(deps: SettleRoom, entry: ManifestEntry, like: Like, whose: Whose): Promise<Scene> {
  // A way that is blocked is nobody's to clear.
  const seen: { standing: Standing } = { standing: 'other' };
  await atPlace(deps, resourceLike(like, entry.path), async (spot) => {
    const now = await spot.look();
    seen.standing = await standingOf(deps, spot, entry, now, whose);
    return settled('unknown', now);
  });
  return { entry, standing: seen.standing, waits: seen.standing !== 'staged' && (await waits(deps, entry)) };
}

export async function waits(deps: SettleRoom, { staged }: ManifestEntry): Promise<boolean> {
  return staged !== null && (await orAbsent(deps.room.calls.lstat(deps.directory.entry(staged.name)))) !== null;
}

export async function standingOf(deps: SettleRoom, spot: Spot, entry: ManifestEntry, now: TargetFacts | null, whose: Whose): Promise<Standing> {
  if (isBefore(now, entry.before) || isVersion(now, entry.kept?.facts ?? null)) return 'old';
  if (entry.staged === null) return 'other';
  const isStaged = whose === 'ours' ? await isPublished(deps, spot, now, entry.staged, 'bytes') : isVersion(now, entry.staged);
  return isStaged ? 'staged' : 'other';
}

/** Each directory once: the files of an upload lie in one. */
async function syncParents(deps: SettleRoom, { entries }: Manifest, like: Like): Promise<void> {
  const first = new Map<string, ManifestEntry>();
  for (const entry of entries) {
    const parent = entry.path.slice(0, Math.max(0, entry.path.lastIndexOf('/')));
    if (!first.has(parent)) first.set(parent, entry);
  }
  for (const { path } of first.values()) {
    await atPlace(deps, resourceLike(like, path), async (spot) => {
      await spot.sync();
      return settled('unknown', null);
    });
  }
}
