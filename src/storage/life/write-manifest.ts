import { refuse } from '../../domain/errors.ts';
import { sameVersion } from '../../domain/file-facts.ts';
import type { Intent } from '../../domain/intent.ts';
import type { At } from '../descriptor.ts';
import { errnoOf } from '../errno.ts';
import { keptOldName } from '../incarnation-names.ts';
import { mayNotBeLinked } from '../link-or-rename.ts';
import type { HeldPlace } from '../path-walk.ts';
import type { VolumeRoom } from '../room.ts';
import { factsOf } from '../target-kind.ts';
import { copyInto } from './copy-into.ts';
import type { IncarnationDirectory } from './incarnation-directory.ts';
import { type ManifestEntry, putManifest } from './manifest-record.ts';
import { OPEN_READ, orAbsent, withOpen } from './whole-file.ts';

/**
 * Keeps the old files of a MOVE or of several writes under second names and makes the manifest durable. Nothing that a reader
 * sees has changed when it resolves or rejects. Rejects with `precondition_failed` when a target is no longer what was looked at.
 */
export async function writeManifestOf(
  room: VolumeRoom,
  directory: IncarnationDirectory,
  operationId: string,
  intents: readonly Intent[],
  places: readonly HeldPlace[],
): Promise<void> {
  const [first] = intents;
  if (first === undefined || (first.plan.kind !== 'several' && first.plan.kind !== 'move')) throw new Error('a manifest is of intents that have one');
  const { plan } = first;
  const entries: ManifestEntry[] = [];
  for (const [index, intent] of intents.entries()) {
    const place = places[index];
    if (place === undefined) throw new Error('every intent of a manifest has its place');
    entries.push({
      path: intent.resource.path,
      before: intent.before,
      staged: intent.staged,
      kept: await keepOld(room, directory, intent, place, keptOldName(plan.manifest, index)),
    });
  }
  await directory.sync();
  const from = plan.kind === 'move' ? { path: plan.from.path, source: plan.source } : null;
  await putManifest(room.calls, directory, { name: plan.manifest, operationId, kind: plan.kind, direction: 'forward', entries, from });
}

async function keepOld(
  room: VolumeRoom,
  directory: IncarnationDirectory,
  { before }: Intent,
  place: HeldPlace,
  name: string,
): Promise<ManifestEntry['kept']> {
  if (before === null) return null;
  const { calls } = room;
  const kept = directory.entry(name);
  const linked = room.hardLinks && (await linkOld(room, place.at, kept));
  if (!linked) await withOpen(calls, place.at, OPEN_READ, (target) => copyInto(calls, target, kept));
  // What stands at the target after the second name was made is what it is the second name of.
  const facts = factsOf(await calls.lstat(kept));
  const now = await orAbsent(calls.lstat(place.at));
  if (now === null || !sameVersion(factsOf(now), before) || (linked && facts.ino !== before.ino)) {
    throw refuse('precondition_failed', 'A file was changed on the volume while it was about to be replaced.');
  }
  return { name, facts };
}

async function linkOld(room: VolumeRoom, target: At, kept: At): Promise<boolean> {
  try {
    await room.calls.link(target, kept);
    return true;
  } catch (thrown) {
    if (mayNotBeLinked(thrown)) return false;
    // The link of an earlier try, or a server that reports its own success as EEXIST (trap F8).
    if (errnoOf(thrown) === 'EEXIST') return true;
    throw thrown;
  }
}
