import { asGatewayError, GatewayError, type ProblemMembers, refuse } from '../domain/errors.ts';
import type { FencingToken } from '../domain/fencing-token.ts';
import { type ForeignContenders, foreignDetail, foreignMembers } from '../domain/foreign-contenders.ts';
import { LIMITS } from '../domain/limits.ts';
import type { Resource } from '../domain/resource.ts';
import type { DecidedEnd } from './lease-end.ts';
import type { Lease } from './lease-record.ts';

/** Refusals that are worded in one place, because several ways lead to them. */

export function queueFull(resource: Resource, max: number): GatewayError {
  return new GatewayError('queue_full', {
    detail: `${max} others already wait for this resource.`,
    members: { resource: resource.name, queue_max: max },
    retryAfterMs: 1_000,
  });
}

/** To who would break the lock. */
export function nobodyHolds(resource: Resource, foreign: ForeignContenders): GatewayError {
  const others = foreignDetail(foreign);
  const detail = others === null ? 'Nobody holds this resource.' : `There is no lease on this resource that could be broken. ${others}`;
  return refuse('not_found', detail, { resource: resource.name, ...foreignMembers(foreign) });
}

/** To who stood in line meanwhile, for a lease or to write. */
export function sessionLost(): GatewayError {
  return new GatewayError('coordinator_suspended', {
    detail: 'The session with the coordinator was lost while this request waited; nothing was changed.',
    retryAfterMs: 1_000,
  });
}

/** To who waits no longer: nobody can say that somebody holds. */
export function notLookedYet(): GatewayError {
  return new GatewayError('coordinator_suspended', {
    detail: 'The coordinator has not answered yet, so it is not known whether somebody holds the resource; nothing was changed.',
    retryAfterMs: 1_000,
  });
}

export function notOwner(): GatewayError {
  return refuse('not_lease_owner', 'The lease belongs to somebody else.');
}

/** To who ordered an end that fences first, of leases that were lost before that could be done. */
export function breakAbandoned(leases: readonly Pick<Lease, 'leaseRef' | 'decided'>[], about: ProblemMembers): GatewayError {
  return new GatewayError('coordinator_suspended', {
    detail: 'The session with the coordinator was lost before the break could fence anybody: the lease is lost with it, and was not broken.',
    members: {
      ...about,
      lease_refs: leases.map(({ leaseRef }) => leaseRef),
      operation_id: leases[0]?.decided?.abandoned?.end.operationId ?? null,
    },
    retryAfterMs: 1_000,
  });
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

const TELLS = {
  'the same request': 'so does the same request, whose answer then says that it is done.',
  'its operation':
    'GET /v1/operations/{operation_id} tells when it is done: operation_not_found until then. To send the break again name these lease_refs in it: without them it would be one of whoever holds the lock by then.',
} as const;

/**
 * The end of a lease, or of a session, has taken effect, and the journal refused it: it can neither be told nor taken back. `about` says
 * how the caller knows it.
 */
export function endInDoubt(cause: unknown, about: ProblemMembers, askedBy: 'the same request' | 'its operation' = 'the same request'): GatewayError {
  const { retryAfterMs } = asGatewayError(cause);
  return new GatewayError('outcome_unknown', {
    detail:
      'The end is decided: nothing is written under the lease any more. But the journal does not have it, and until it has, a start of the ' +
      `gateway may bring the lease back. The gateway tries again by itself; ${TELLS[askedBy]}`,
    members: about,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    cause,
  });
}

/** What a refusal of a write would be about is not in the journal, and may yet turn out otherwise. */
export function notDurableYet(cause: unknown): GatewayError {
  return new GatewayError('journal_unavailable', {
    detail: 'What became of the lease of this token is not in the journal yet; nothing was changed by this request.',
    retryAfterMs: LIMITS.journalRetryAfterMs,
    cause,
  });
}

/** A commit section under the lease has not ended, and with it the end of the lease waits. */
export function endNotReached(): GatewayError {
  return new GatewayError('volume_unavailable', {
    detail: 'The lease of this token ends as soon as an earlier write under it has ended; nothing was changed by this request.',
    retryAfterMs: LIMITS.settleRetryMs,
  });
}

/** A session is over, and that may not be told yet. `pinned`: a commit section under one of its leases has not ended. */
export function sessionEndNotReached(pinned: boolean): GatewayError {
  return pinned
    ? new GatewayError('volume_unavailable', {
        detail: 'The session ends as soon as a write under one of its leases has ended; nothing was changed by this request.',
        retryAfterMs: LIMITS.settleRetryMs,
      })
    : new GatewayError('journal_unavailable', {
        detail: 'What became of the session is not in the journal yet; nothing was changed by this request.',
        retryAfterMs: LIMITS.journalRetryAfterMs,
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
