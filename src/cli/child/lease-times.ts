import { defaultMarginMs } from '../../client/lease-margin.ts';
import { shownDuration } from '../durations.ts';
import { UsageError } from '../usage-error.ts';

const TTL_MS_DEFAULT = 30_000;
const GRACE_MS_DEFAULT = 5_000;

export interface LeaseTimes {
  readonly ttlMs: number;
  readonly graceMs: number;
  readonly marginMs: number;
}

/**
 * The margin of a lease under which a command runs: SIGTERM, the grace and SIGKILL must all come before the lease can end. A lease is renewed
 * when a third of its time is over, so the grace may take up to another third. The longest hold must leave the command some time before all that.
 * Throws `UsageError`.
 */
export function leaseTimes(given: { readonly ttl?: number; readonly grace?: number; readonly maxHold?: number }): LeaseTimes {
  const ttlMs = given.ttl ?? TTL_MS_DEFAULT;
  const graceMs = given.grace ?? Math.min(GRACE_MS_DEFAULT, Math.floor(Math.min(ttlMs, given.maxHold ?? ttlMs) / 6));
  if (graceMs > ttlMs / 3) {
    throw new UsageError(
      `a grace of ${shownDuration(graceMs)} needs a lease of ${shownDuration(graceMs * 3)} or more; write --ttl ${Math.ceil((graceMs * 3) / 1_000)}s`,
    );
  }
  const marginMs = graceMs + defaultMarginMs(ttlMs, given.maxHold);
  if (given.maxHold !== undefined && given.maxHold <= marginMs) {
    throw new UsageError(
      `--max-hold ${shownDuration(given.maxHold)} leaves the command no time: it is ended ${shownDuration(marginMs)} before; write a longer one, or a shorter --grace`,
    );
  }
  return { ttlMs, graceMs, marginMs };
}
