import { GatewayError } from '../domain/errors.ts';
import type { Place, Volume } from '../domain/volume.ts';
import { outcomeUnknown } from './idempotency.ts';
import type { Operation } from './operation.ts';

/**
 * The last part of an apply: its changed names are made durable, those of `places`. The bytes are visible by now, so that whatever stands in the
 * way of it is no failure of the write (I3, I4): everything rejects with `outcome_unknown`, also that the volume was taken over, began anew or was
 * closed in between, which would be definite before.
 */
export async function makeNamesDurable(operation: Operation, volume: Volume, places: Iterable<Place>): Promise<void> {
  await operation.reached('6.applied');
  try {
    for (const place of places) await volume.syncParent(place);
  } catch (thrown) {
    throw thrown instanceof GatewayError && thrown.code === 'outcome_unknown' ? thrown : outcomeUnknown(operation.id, thrown);
  }
}
