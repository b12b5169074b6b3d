import { outOfBounds } from '../domain/bounds.ts';
import { GatewayError, refuse } from '../domain/errors.ts';
import { LIMITS } from '../domain/limits.ts';
import type { AcquireRequest } from '../domain/lock-api.ts';
import { inCanonicalOrder, type Resource } from '../domain/resource.ts';
import type { VolumePolicy } from '../domain/volume.ts';
import { PRIORITY_MAX } from './order-key.ts';

/** A request whose every number lies within its bounds; nothing was clamped silently. */
export interface AcquireTerms {
  readonly resources: readonly Resource[];
  readonly ttlMs: number;
  readonly maxHoldMs: number | null;
  readonly lockDelayMs: number;
}

/**
 * Checks a request against the limits and the policies of its volumes.
 * Throws `invalid_request` with the field and its bounds, `ttl_out_of_range` (`min_ms`, `max_ms`; case R15), `volume_not_found`.
 */
export function acquireTerms(request: AcquireRequest, policyOf: (volume: string) => VolumePolicy): AcquireTerms {
  const resources = inCanonicalOrder(request.resources);
  if (resources.length < 1 || resources.length > LIMITS.leaseResourcesMax) throw outOfBounds('resources', { min: 1, max: LIMITS.leaseResourcesMax });
  if (resources.some((resource, i) => resource.key === resources[i + 1]?.key))
    throw refuse('invalid_request', 'A resource is named twice.', { field: 'resources' });
  const policies = resources.map(({ volume }) => policyOf(volume).lease);
  if (request.waitMs !== null) bounded('wait_ms', request.waitMs, 0, LIMITS.leaseWaitMsMax);
  bounded('priority', request.priority, 0, PRIORITY_MAX);
  if (request.maxWaitMs !== null) bounded('max_wait_ms', request.maxWaitMs, 1, Number.MAX_SAFE_INTEGER);
  checkText('client_id', request.clientId, LIMITS.clientIdBytesMax);
  checkText('hold_id', request.holdId, LIMITS.holdIdBytesMax);
  checkText('metadata', request.metadata === null ? null : JSON.stringify(request.metadata), LIMITS.leaseMetadataBytesMax);
  return {
    resources,
    ttlMs: ttl(request.ttlMs, policies),
    maxHoldMs: maxHold(request.maxHoldMs, policies),
    lockDelayMs: lockDelay(request.lockDelayMs, policies),
  };
}

/** The time to live of a lease over `resources`. Throws `ttl_out_of_range`, `volume_not_found`. */
export function leaseTtl(ttlMs: number, resources: readonly Resource[], policyOf: (volume: string) => VolumePolicy): number {
  return ttl(
    ttlMs,
    resources.map(({ volume }) => policyOf(volume).lease),
  );
}

/** The time to live of a session. Throws `ttl_out_of_range`. */
export function sessionTtl(ttlMs: number | null): number {
  const { leaseTtlMsMin: minMs, leaseTtlMsMax: maxMs, leaseTtlMsDefault } = LIMITS;
  return checkTtl(ttlMs ?? leaseTtlMsDefault, minMs, maxMs);
}

/** The wait of a poll. Throws `invalid_request` with the bounds. */
export function checkWait(waitMs: number): void {
  bounded('wait_ms', waitMs, 0, LIMITS.leaseWaitMsMax);
}

export function bounded(field: string, value: number, min: number, max: number): void {
  if (!Number.isSafeInteger(value) || value < min || value > max) throw outOfBounds(field, { min, max });
}

export function checkText(field: string, text: string | null, bytesMax: number): void {
  if (text !== null && Buffer.byteLength(text) > bytesMax)
    throw refuse('invalid_request', `${field} is over ${bytesMax} bytes.`, { field, bytes_max: bytesMax });
}

type LeasePolicy = VolumePolicy['lease'];

function ttl(wanted: number | null, policies: readonly LeasePolicy[]): number {
  const minMs = Math.max(...policies.map(({ ttlMsMin }) => ttlMsMin));
  const maxMs = Math.min(...policies.map(({ ttlMsMax, infinite }) => (infinite ? LIMITS.leaseTtlMsUnbounded : ttlMsMax)));
  return checkTtl(wanted ?? Math.min(Math.max(LIMITS.leaseTtlMsDefault, minMs), maxMs), minMs, maxMs);
}

function checkTtl(ttlMs: number, minMs: number, maxMs: number): number {
  if (Number.isSafeInteger(ttlMs) && ttlMs >= minMs && ttlMs <= maxMs) return ttlMs;
  throw new GatewayError('ttl_out_of_range', {
    detail: `ttl_ms lies between ${minMs} and ${maxMs} here.`,
    members: { min_ms: minMs, max_ms: maxMs },
  });
}

function maxHold(wanted: number | null, policies: readonly LeasePolicy[]): number | null {
  const allowed = policies.flatMap(({ maxHoldMs }) => (maxHoldMs === null ? [] : [maxHoldMs]));
  const maxMs = allowed.length === 0 ? Number.MAX_SAFE_INTEGER : Math.min(...allowed);
  // Shorter than any lease, it would be over before its holder has done anything.
  if (wanted !== null) bounded('max_hold_ms', wanted, LIMITS.leaseTtlMsMin, maxMs);
  return wanted ?? (allowed.length === 0 ? null : maxMs);
}

function lockDelay(wanted: number | null, policies: readonly LeasePolicy[]): number {
  if (wanted !== null) bounded('lock_delay_ms', wanted, 0, LIMITS.lockDelayMsMax);
  return wanted ?? Math.max(...policies.map(({ lockDelayMs }) => lockDelayMs));
}
