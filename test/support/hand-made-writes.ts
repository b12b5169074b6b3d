import type { StagedFacts, TargetFacts } from '../../src/domain/file-facts.ts';
import type { ApplyPlan, Intent } from '../../src/domain/intent.ts';
import type { Place } from '../../src/domain/volume.ts';
import type { FileVolume } from '../../src/storage/file-volume.ts';
import type { LivingVolume } from './living-volume.ts';
import { sealAs } from './seal.ts';
import { SAMPLE_RECORD } from './temp-volume.ts';

/** One write as the commit section does it, without leases and HTTP: staged, intended, applied, synced. */
export interface HandMade {
  readonly living: LivingVolume;
  readonly volume: FileVolume;
  readonly operationId: string;
}

export function intentFor(
  { living, volume, operationId }: HandMade,
  path: string,
  plan: ApplyPlan,
  before: TargetFacts | null,
  staged: StagedFacts | null,
): Intent {
  const facts = before === null ? null : { ino: before.ino, sizeBytes: before.sizeBytes, mtimeNs: before.mtimeNs };
  return {
    operationId,
    resource: living.resource(path),
    before: facts,
    staged,
    plan,
    incarnation: volume.incarnation,
    audit: { ...SAMPLE_RECORD, operationId, path },
  };
}

async function stageBytes({ volume }: HandMade, content: string, replaces: TargetFacts | null): Promise<StagedFacts> {
  const staging = await volume.stage({ sha512: false });
  await staging.write(Buffer.from(content));
  const facts = await sealAs(volume, staging, replaces);
  await staging.sync();
  return facts;
}

async function commit(write: HandMade, intent: Intent, place: Place, from: Place | null = null): Promise<void> {
  write.living.record.intend(intent);
  await write.volume.apply(intent, place, from);
  await write.volume.syncParent(place);
}

/** PUT over a file that exists, or with `create` one that must not. */
export async function put(write: HandMade, path: string, content: string, kind: 'replace' | 'create' = 'replace'): Promise<void> {
  const { volume, living } = write;
  const place = await volume.locate(living.resource(path));
  const before = await volume.look(place);
  const staged = await stageBytes(write, content, before);
  const intent = intentFor(write, path, { kind }, before, staged);
  if (place.parent !== null) return commit(write, intent, place);
  living.record.intend(intent);
  const made = await volume.makeParents(place);
  await volume.apply(intent, made, null);
  await volume.syncParent(made);
}

export async function remove(write: HandMade, path: string): Promise<void> {
  const place = await write.volume.locate(write.living.resource(path));
  const before = await write.volume.look(place);
  await commit(write, intentFor(write, path, { kind: 'remove', trash: `trash-${write.operationId}` }, before, null), place);
}

/** A write in place: at the end, or over the bytes at `offset`. */
export async function writeInPlace(write: HandMade, path: string, content: string, offset: number | 'append'): Promise<void> {
  const { volume, living } = write;
  const place = await volume.locate(living.resource(path));
  const before = await volume.look(place);
  if (before === null) throw new Error('an append needs its file');
  const staged = await stageBytes(write, content, null);
  const at = { offset: offset === 'append' ? before.sizeBytes : offset, lengthBytes: staged.sizeBytes, mtimeNs: staged.mtimeNs };
  const intent = intentFor(write, path, { kind: offset === 'append' ? 'append' : 'in_place', ...at }, before, staged);
  await volume.writeRedo(intent);
  await commit(write, intent, place);
}

export async function move(write: HandMade, from: string, to: string): Promise<void> {
  const { volume, living, operationId } = write;
  const [a, b] = [await volume.locate(living.resource(from)), await volume.locate(living.resource(to))];
  const [source, before] = [await volume.look(a), await volume.look(b)];
  if (source === null) throw new Error('a move needs its file');
  const facts = { ino: source.ino, sizeBytes: source.sizeBytes, mtimeNs: source.mtimeNs };
  const intent = intentFor(
    write,
    to,
    { kind: 'move', from: living.resource(from), source: facts, manifest: `manifest-${operationId}` },
    before,
    null,
  );
  await volume.writeManifest(operationId, [intent], [b]);
  await commit(write, intent, b, a);
}

export async function several(write: HandMade, files: Readonly<Record<string, string>>): Promise<void> {
  const { volume, living, operationId } = write;
  const intents: Intent[] = [];
  const places: Place[] = [];
  for (const [path, content] of Object.entries(files)) {
    const place = await volume.locate(living.resource(path));
    const before = await volume.look(place);
    intents.push(intentFor(write, path, { kind: 'several', manifest: `manifest-${operationId}` }, before, await stageBytes(write, content, before)));
    places.push(place);
  }
  await volume.writeManifest(operationId, intents, places);
  living.record.intend(...intents);
  for (const [index, intent] of intents.entries()) {
    const place = places[index];
    if (place === undefined) continue;
    await volume.apply(intent, place, null);
    await volume.syncParent(place);
  }
}
