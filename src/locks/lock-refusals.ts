import { GatewayError, refuse } from '../domain/errors.ts';
import type { FencingToken } from '../domain/fencing-token.ts';
import type { Resource } from '../domain/resource.ts';
import type { DecidedEnd } from './lease-record.ts';

/** Refusals that are worded in one place, because several ways lead to them. */

export function queueFull(resource: Resource, max: number): GatewayError {
  return new GatewayError('queue_full', {
    detail: `${max} others already wait for this resource.`,
    members: { resource: resource.name, queue_max: max },
    retryAfterMs: 1_000,
  });
}

export function notOwner(): GatewayError {
  return refuse('not_lease_owner', 'The lease belongs to somebody else.');
}

/** The journal may have the grant, and then the lease is held after the next start: whoever asked for it can ask again, and give it back. */
export function grantInDoubt(leaseId: string, cause: GatewayError): GatewayError {
  return new GatewayError('outcome_unknown', {
    detail:
      'The journal did not say whether it has the grant of this lease. Once the gateway was started again, GET /v1/leases/{id} with this ' +
      'lease_id tells: held, and then it is yours to use or to release; or 404, and then it was not granted.',
    members: { lease_id: leaseId },
    ...(cause.retryAfterMs === undefined ? {} : { retryAfterMs: cause.retryAfterMs }),
    cause,
  });
}

/** 412 in the commit section. The mark is never shown here: where the token was presented, the write protocol judges it again, and knows the caller. */
export function staleToken(token: FencingToken): GatewayError {
  return refuse('stale_token', 'A newer token exists for this resource: the lease behind this one is over.', {
    presented_token: token.toString(),
    newer_token_exists: true,
  });
}

export function leaseShared(token: FencingToken): GatewayError {
  return refuse('lease_is_shared', 'The token belongs to a shared lease; only an exclusive one may write.', { presented_token: token.toString() });
}

export function leaseEnded(decided: DecidedEnd | null): GatewayError {
  return refuse('lease_ended', 'The lease of this token has ended.', { reason: decided?.end.reason ?? null, ended_at: decided?.endedAt ?? null });
}
