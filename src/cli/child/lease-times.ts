import { shownDuration } from '../durations.ts';
import { UsageError } from '../usage-error.ts';

const TTL_MS_DEFAULT = 30_000;
const GRACE_MS_DEFAULT = 5_000;
/** As the SDK's own: what a lease is over here too early. */
const MARGIN_PART = 0.1;
const MARGIN_MS_MIN = 100;
const MARGIN_MS_MAX = 3_000;

export interface LeaseTimes {
  readonly ttlMs: number;
  readonly graceMs: number;
  readonly marginMs: number;
}

/**
 * The margin of a lease under which a command runs: SIGTERM, the grace and SIGKILL must all come before the lease can end. A lease is renewed
 * when a third of its time is over, so the grace may take up to another third. Throws `UsageError`.
 */
export function leaseTimes(given: { readonly ttl?: number; readonly grace?: number }): LeaseTimes {
  const ttlMs = given.ttl ?? TTL_MS_DEFAULT;
  const graceMs = given.grace ?? Math.min(GRACE_MS_DEFAULT, Math.floor(ttlMs / 6));
  if (graceMs > ttlMs / 3) {
    throw new UsageError(
      `a grace of ${shownDuration(graceMs)} needs a lease of ${shownDuration(graceMs * 3)} or more; write --ttl ${Math.ceil((graceMs * 3) / 1_000)}s`,
    );
  }
  const marginMs = graceMs + Math.min(MARGIN_MS_MAX, Math.max(MARGIN_MS_MIN, ttlMs * MARGIN_PART));
  return { ttlMs, graceMs, marginMs };
}
