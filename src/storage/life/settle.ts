import { refuse } from '../../domain/errors.ts';
import type { Intent, Settled } from '../../domain/intent.ts';
import { settleMkdir, settleRmdir } from './settle-directory.ts';
import { settlePublish, settleRemove } from './settle-file.ts';
import { settleInPlace } from './settle-in-place.ts';
import { settleMove } from './settle-move.ts';
import type { SettleRoom } from './settle-room.ts';
import { settleSeveral } from './settle-several.ts';

/**
 * Looks at the volume, says what became of an intent, and finishes it where that is safe (I3). Names of the intent are looked up in
 * the own directory: old ones were emptied into it. Asking again gives the same answer. Rejects when the volume does not answer.
 */
export async function settleIntent(deps: SettleRoom, intent: Intent): Promise<Settled> {
  const verdict = await judge(deps, intent);
  // A successor has taken the staged file away and may be finishing the write: what is missing here proves nothing.
  if (verdict.settlement === 'aborted' && (await deps.isFenced()))
    throw refuse('volume_unavailable', `The volume ${deps.room.name} was taken over by another incarnation.`);
  return verdict;
}

function judge(deps: SettleRoom, intent: Intent): Promise<Settled> {
  const { plan } = intent;
  switch (plan.kind) {
    case 'replace':
      return settlePublish(deps, intent, 'rename');
    case 'create':
      return settlePublish(deps, intent, 'link');
    case 'append':
    case 'in_place':
      return settleInPlace(deps, intent);
    case 'remove':
      return settleRemove(deps, intent, plan.trash);
    case 'move':
      return settleMove(deps, intent);
    case 'several':
      return settleSeveral(deps, intent, plan.manifest);
    case 'mkdir':
      return settleMkdir(deps, intent);
    case 'rmdir':
      return settleRmdir(deps, intent);
  }
}
