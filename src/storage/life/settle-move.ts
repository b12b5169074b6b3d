import type { FileFacts, TargetFacts } from '../../domain/file-facts.ts';
import type { Intent, Settled } from '../../domain/intent.ts';
import { moveLinkName, moveTrashName } from '../incarnation-names.ts';
import { linkOrRename } from '../link-or-rename.ts';
import { factsOf } from '../target-kind.ts';
import { type Manifest, putManifest, readManifest } from './manifest-record.ts';
import { resourceLike } from './resource-like.ts';
import { atPlace, type Change, change, isBefore, isInode, isVersion, type SettleRoom, type Spot, settled } from './settle-room.ts';
import { orAbsent } from './whole-file.ts';

/**
 * Recovery of a MOVE by the inodes of the old name, the new name and the link between them. At every instant the bytes are under
 * the old or the new name (without hard links: or under the link), so each state says which step is next.
 */
export interface Move {
  readonly manifest: Manifest;
  readonly source: FileFacts;
  readonly before: FileFacts | null;
  readonly fromPath: string;
}

/** The two names of a MOVE while it is judged, and the file under the link. */
interface Scene {
  readonly deps: SettleRoom;
  readonly move: Move;
  readonly from: Spot;
  readonly to: Spot;
}

export async function settleMove(deps: SettleRoom, intent: Intent): Promise<Settled> {
  const { plan } = intent;
  if (plan.kind !== 'move') return settled('unknown', null);
  const found = await readManifest(deps.room.calls, deps.directory.entry(plan.manifest));
  const manifest: Manifest = found ?? {
    name: plan.manifest,
    operationId: intent.operationId,
    kind: 'move',
    direction: 'forward',
    entries: [{ path: intent.resource.path, before: intent.before, staged: null, kept: null }],
    from: { path: plan.from.path, source: plan.source },
  };
  return rollMove(
    deps,
    { manifest, source: plan.source, before: intent.before, fromPath: plan.from.path },
    intent.resource.path,
    intent.resource.volume,
  );
}

/** Carries a MOVE on from where it stands, or takes it back. Overwrites nothing but what `before` says. */
export function rollMove(deps: SettleRoom, move: Move, toPath: string, volume: string): Promise<Settled> {
  return atPlace(deps, resourceLike({ volume }, move.fromPath), (from) =>
    atPlace(deps, resourceLike({ volume }, toPath), (to) => roll({ deps, move, from, to })),
  );
}

async function roll(scene: Scene): Promise<Settled> {
  const { move, from, to } = scene;
  const [old, now] = [await from.look(), await to.look()];
  if (move.manifest.direction === 'back') return takeBack(scene);
  if (isInode(now, move.source.ino)) {
    if (!isInode(old, move.source.ino)) return finish(scene, 'committed', now);
    return removeOldName(scene);
  }
  if (!isOld(move, now)) return settled('unknown', now);
  const between = await linkFacts(scene);
  if (isInode(between, move.source.ino)) return publishLink(scene);
  if (!isVersion(old, move.source)) return settled('unknown', now);
  const outcome = await makeLink(scene);
  if (outcome !== 'made') return settled(outcome === 'refused' ? 'aborted' : 'unknown', now);
  return publishLink(scene);
}

/** First step: the file gets its second name; where it cannot be linked its old name becomes the link. */
async function makeLink({ deps, move, from }: Scene): Promise<Change> {
  const link = deps.directory.entry(moveLinkName(move.manifest.name));
  return change(deps, async () => void (await linkOrRename(deps.room, from.at, link)));
}

/** Second step: the link takes the new name. */
async function publishLink(scene: Scene): Promise<Settled> {
  const { deps, move, from, to } = scene;
  const outcome = await change(deps, async () => {
    await to.withParents();
    await deps.room.calls.rename(deps.directory.entry(moveLinkName(move.manifest.name)), to.at);
  });
  const now = await to.look();
  if (isInode(now, move.source.ino)) return isInode(await from.look(), move.source.ino) ? removeOldName(scene) : finish(scene, 'finished', now);
  if (outcome === 'refused') return goBack(scene);
  return settled('unknown', now);
}

/** Third step: the old name goes. */
async function removeOldName(scene: Scene): Promise<Settled> {
  const { deps, move, from, to } = scene;
  const outcome = await change(deps, () => deps.room.calls.rename(from.at, deps.directory.entry(moveTrashName(move.manifest.name))));
  if (!isInode(await from.look(), move.source.ino)) return finish(scene, 'finished', await to.look());
  if (outcome === 'refused') return goBack(scene);
  return settled('unknown', await to.look());
}

async function finish({ from, to }: Scene, settlement: 'committed' | 'finished', now: TargetFacts | null): Promise<Settled> {
  await to.sync();
  await from.sync();
  return settled(settlement, now);
}

async function goBack(scene: Scene): Promise<Settled> {
  const manifest: Manifest = { ...scene.move.manifest, direction: 'back' };
  await putManifest(scene.deps.room.calls, scene.deps.directory, manifest);
  return takeBack({ ...scene, move: { ...scene.move, manifest } });
}

/** The new name becomes what it was, the old name what it was. */
async function takeBack({ deps, move, from, to }: Scene): Promise<Settled> {
  const { calls } = deps.room;
  const link = deps.directory.entry(moveLinkName(move.manifest.name));
  const kept = move.manifest.entries[0]?.kept ?? null;
  if (isInode(await to.look(), move.source.ino)) {
    const stillOld = isInode(await from.look(), move.source.ino);
    // Where the old name is gone, the new name holds the bytes until the link does.
    if (move.before === null || kept === null) await change(deps, () => calls.rename(to.at, link));
    else if (stillOld) await change(deps, () => calls.rename(deps.directory.entry(kept.name), to.at));
  }
  if ((await from.look()) === null && isInode(await linkFacts({ deps, move }), move.source.ino))
    await change(deps, () => calls.rename(link, from.at));
  const now = await to.look();
  await to.sync();
  await from.sync();
  return settled(isOld(move, now) && isInode(await from.look(), move.source.ino) ? 'aborted' : 'unknown', now);
}

function isOld(move: Move, now: TargetFacts | null): boolean {
  return isBefore(now, move.before) || isVersion(now, move.manifest.entries[0]?.kept?.facts ?? null);
}

async function linkFacts({ deps, move }: Pick<Scene, 'deps' | 'move'>): Promise<TargetFacts | null> {
  const found = await orAbsent(deps.room.calls.lstat(deps.directory.entry(moveLinkName(move.manifest.name))));
  return found === null ? null : factsOf(found);
}
