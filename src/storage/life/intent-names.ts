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

/** A manifest's own names; the record is first, because without it nobody asks for the others. */
export function namesOfManifest(manifest: string, entries: number): string[] {
  return [manifest, moveLinkName(manifest), moveTrashName(manifest), ...Array.from({ length: entries }, (_, index) => keptOldName(manifest, index))];
}
