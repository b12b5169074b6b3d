import { type FileFacts, sameVersion } from '../../domain/file-facts.ts';
import type { Intent } from '../../domain/intent.ts';
import type { SettledIntent, VolumeFinding } from '../../domain/recovery.ts';
import { Fence } from '../fence.ts';
import { makeParents } from '../make-parents.ts';
import { walkTo } from '../path-walk.ts';
import type { VolumeRoom } from '../room.ts';
import { lookAt } from '../target.ts';
import type { IncarnationDirectory } from './incarnation-directory.ts';
import { namesOf, namesOfManifest } from './intent-names.ts';
import { Rolls } from './rolls.ts';
import { settleIntent } from './settle.ts';
import type { SettleRoom } from './settle-room.ts';
import type { StartContext } from './start-deps.ts';
import { settleStrays } from './stray.ts';
import { ownNames, sweep } from './sweep.ts';

/**
 * Compares every unsettled intent with the volume and finishes what is safe, has the outcomes made durable, and then unlinks what
 * nobody needs. Before anything is granted or served, after every old directory is gone. Asked twice it answers the same.
 * `anotherSince`: another journal had the volume after our intents were written; what was not done by then is done no more (I1).
 * @returns what the volume settles with while it serves.
 */
export async function recoverVolume(
  deps: StartContext,
  room: VolumeRoom,
  directory: IncarnationDirectory,
  { anotherSince }: { readonly anotherSince: boolean },
): Promise<{ life: SettleRoom; findings: VolumeFinding[] }> {
  const fence = new Fence(room, deps.onFenced);
  const unsettled = deps.record.unsettled();
  const awaited = new Set(unsettled.map((intent) => awaitedKey(intent.operationId, intent.resource.path)));
  const starting: SettleRoom = {
    room,
    directory,
    isFenced: () => fence.look(),
    locate: (resource) => walkTo(room, resource),
    look: (place) => lookAt(room, place),
    makeParents: (place) => makeParents(room, place),
    isUnsettled: (operationId, path) => awaited.has(awaitedKey(operationId, path)),
    writerOf: deps.writerOf,
    verify: 'digest',
    finishes: !anotherSince,
    rolls: new Rolls('all'),
  };
  const results: SettledIntent[] = [];
  for (const intent of unsettled) results.push({ intent, ...(await settleIntent(starting, intent)) });
  const strays = await settleStrays(starting, await ownNames(room.calls, directory), (operationId) => deps.record.knows(operationId));
  await deps.record.recovered(results);
  await sweep(room.calls, directory, neededNames(results, strays.keep));
  await directory.sync();
  const life: SettleRoom = {
    ...starting,
    isUnsettled: () => true,
    writerOf: (name) => (name === directory.name ? 'ourselves' : deps.writerOf(name)),
    verify: 'facts',
    finishes: true,
    rolls: new Rolls('decided'),
  };
  return { life, findings: [...strays.findings, ...results.flatMap((result) => unknownFinding(room.name, result))] };
}

function awaitedKey(operationId: string, path: string): string {
  return `${operationId}/${path}`;
}

/** An unknown intent may be settled later: what it needs stays. */
function neededNames(results: readonly SettledIntent[], kept: readonly string[]): ReadonlySet<string> {
  const unknown = results.filter(({ settlement }) => settlement === 'unknown').map(({ intent }) => intent);
  return new Set([...kept, ...unknown.flatMap(namesOf), ...unknown.flatMap((intent) => severalNames(intent, results))]);
}

function severalNames({ plan, operationId }: Intent, results: readonly SettledIntent[]): string[] {
  if (plan.kind !== 'several') return [];
  const together = results.filter(({ intent }) => intent.operationId === operationId);
  return [...namesOfManifest(plan.manifest, together.length), ...together.flatMap(({ intent }) => namesOf(intent))];
}

function unknownFinding(volume: string, { intent, settlement, after }: SettledIntent): VolumeFinding[] {
  if (settlement !== 'unknown') return [];
  return [
    {
      code: 'intent_unknown',
      severity: 'error',
      volume,
      resource: intent.resource.name,
      evidence: evidenceOf(intent, after),
    },
  ];
}

function evidenceOf({ operationId, before }: Intent, after: FileFacts | null): string {
  if (after === null)
    return before === null
      ? `There is no file, as before operation ${operationId}; whether that operation can still make it, the volume did not say.`
      : `The file that operation ${operationId} changes is not where it was. Nothing was overwritten.`;
  return before !== null && sameVersion(after, before)
    ? `The file is what it was before operation ${operationId}; whether that operation can still change it, the volume did not say.`
    : `The file is neither what it was before operation ${operationId} nor what that operation writes. Nothing was overwritten.`;
}
