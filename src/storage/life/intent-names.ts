import type { Intent } from '../../domain/intent.ts';
import { keptOldName, moveLinkName, moveTrashName, redoName } from '../incarnation-names.ts';
import { copyNameOf } from './volume-names.ts';

/** The names in the incarnation directory that belong to one intent, the staged file and the record of its plan included. */
export function namesOf({ plan, staged }: Intent): string[] {
  const names = staged === null ? [] : [staged.name];
  switch (plan.kind) {
    case 'append':
    case 'in_place':
      return staged === null ? [] : [redoName(staged.name), copyNameOf(staged.name), staged.name];
    case 'remove':
      return [...names, plan.trash];
    case 'move':
      return [...namesOfManifest(plan.manifest, 1), ...names];
    default:
      return names;
  }
}

/**
 * What all intents of one operation may have left, each name once. The record of a plan comes first: as long as it lies there, so does
 * everything that it names.
 */
export function namesOfOperation(intents: readonly Intent[]): string[] {
  const names = new Set<string>();
  for (const [index, intent] of intents.entries()) {
    if (intent.plan.kind === 'several') {
      names.add(intent.plan.manifest);
      if (intent.before !== null) names.add(keptOldName(intent.plan.manifest, index));
    }
    for (const name of namesOf(intent)) names.add(name);
  }
  return [...names];
}

/** A manifest's own names; the record is first, because without it nobody asks for the others. */
export function namesOfManifest(manifest: string, entries: number): string[] {
  return [manifest, moveLinkName(manifest), moveTrashName(manifest), ...Array.from({ length: entries }, (_, index) => keptOldName(manifest, index))];
}
