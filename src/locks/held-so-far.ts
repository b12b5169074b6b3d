import { type Clock, monotonicMsOf, sinceMachine } from '../domain/clock.ts';
import type { HeldSoFar, StoredLease } from '../domain/journal.ts';
import type { Lease } from './lease-record.ts';

/** How long a lease has been held, in words that the next start of the process understands: its longest hold is not begun anew. */
export function heldSoFar(lease: Lease, clock: Clock): HeldSoFar {
  return { ms: lease.told === null ? 0 : clock.monotonicMs() - lease.grantedMs, at: clock.machine() };
}

/**
 * When a stored lease was granted, on the monotonic clock of this process. In the boot in which it was written the machine has counted on,
 * and no clock that was set makes a hold longer or shorter. In another one the wall clock is asked, and is believed no less than what was written.
 */
export function grantedMsOf({ held, grantedAt }: Pick<StoredLease, 'held' | 'grantedAt'>, clock: Clock): number {
  const byWallMs = monotonicMsOf(grantedAt, clock);
  if (held === undefined) return byWallMs;
  const sinceMs = sinceMachine(held.at, clock);
  const nowMs = clock.monotonicMs();
  return sinceMs === null ? Math.min(byWallMs, nowMs - held.ms) : nowMs - held.ms - sinceMs;
}

/** The next start could not count on from what is written. */
export function writtenElsewhere({ held }: Pick<StoredLease, 'held'>, clock: Clock): boolean {
  return held === undefined || sinceMachine(held.at, clock) === null;
}
