import type { Clock } from '../domain/clock.ts';
import { LIMITS } from '../domain/limits.ts';
import { within } from '../domain/within.ts';
import type { Lease } from './lease-record.ts';

/**
 * Resolves when the journal has taken or refused the ends of `leases`, so that an end which a question itself found is told by its answer;
 * or after a moment, for a journal that is slow must not hold up who only looks. Then those are told as if they had not ended.
 */
export async function endsSettled(leases: readonly Lease[], clock: Clock): Promise<void> {
  const pending = leases.flatMap(({ phase, decided }) => (phase === 'over' && decided !== null ? [decided.durable] : []));
  if (pending.length === 0) return;
  await within(clock, LIMITS.endsAwaitedMs, Promise.allSettled(pending));
}
