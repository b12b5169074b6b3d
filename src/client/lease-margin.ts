import { outOfRange } from './call-checks.ts';
import { CLIENT_LIMITS } from './client-limits.ts';
import type { LeaseOptions } from './lease-options.ts';

/** How much too early a lease counts as over that lives for `ttlMs` at a time, and not longer than `holdMs` in all. */
export function defaultMarginMs(ttlMs: number, holdMs: number = Number.POSITIVE_INFINITY): number {
  const part = Math.min(ttlMs, holdMs) * CLIENT_LIMITS.marginPart;
  return Math.min(CLIENT_LIMITS.marginMsMax, Math.max(CLIENT_LIMITS.marginMsMin, part));
}

/**
 * Times that would have a lease granted and count as over at once, or before its first renewal. Throws `RangeError` with the bound. `ttlMs`:
 * what is asked for when the options do not say.
 */
export function checkMargin({ marginMs, maxHoldMs, ttlMs: own }: LeaseOptions, ttlMs: number): void {
  const longestMs = (own ?? ttlMs) / 2;
  if (marginMs !== undefined && marginMs > longestMs)
    throw outOfRange('marginMs', `at most half of the time to live, ${longestMs}, as a lease is renewed in thirds of that`, marginMs);
  const leastMs = marginMs ?? defaultMarginMs(own ?? ttlMs, maxHoldMs);
  if (maxHoldMs !== undefined && maxHoldMs <= leastMs)
    throw outOfRange('maxHoldMs', `more than ${leastMs}, the margin by which the lease counts as over too early`, maxHoldMs);
}
